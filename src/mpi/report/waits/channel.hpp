// SPDX-License-Identifier: BSD-3-Clause
// Letters between the ranks, about reports and about what IMBREX_CHECK compares, on a communicator
// of their own, so that no message of the program's is touched. Never waits: a rank that does not
// answer harms nobody.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace imbrex::mpi::report {

// The kinds of letters. Their values are also the tags of the messages.
enum class Letter : int {
  ask,      // to rank 0: this rank wants a report; the text is its heading
  request,  // from rank 0: say what you do
  answer,   // to rank 0: the text is what this rank does
  printed,  // from rank 0, to those who asked
  // Of check/ranks/: what a rank says of the collectives of a communicator, and many of these in
  // one message.
  begun, unordered, ended, several
};

struct Mail {
  Letter letter;
  int from;
  std::string text;
};

// Thread safety: one thread at a time.
// Invariants: (1) what `sending_` and `receiving_` hold stays in place until MPI has let go of it.
class Channel {
 public:
  // This is collective over MPI_COMM_WORLD, as is the destructor. `name`: of its communicator.
  explicit Channel(const char* name);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }

  void send(int to, Letter letter, std::string text);
  // The next letter that has arrived whole.
  [[nodiscard]] std::optional<Mail> receive();

  // For the end: begin_end() begins to say that this rank asks no more; all_end() is true once all
  // ranks have said so.
  void begin_end();
  [[nodiscard]] bool all_end();
  // For an end at which no letter may be lost: begin_count() says that this rank sends none any
  // more; has_all() is true once all have said so, and receive() has given all that came here.
  void begin_count();
  [[nodiscard]] bool has_all();

 private:
  struct Transfer {
    MPI_Request request;
    Mail mail;
  };
  void forget_sent();
  void take_arrived();

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 1;
  std::list<Transfer> sending_;    // no bound needed: a few for each report
  std::list<Transfer> receiving_;
  MPI_Request end_ = MPI_REQUEST_NULL;
  std::vector<int> sent_;  // letters, to each rank
  std::vector<int> counts_;  // of all ranks, one behind the other
  std::int64_t received_ = 0;
  MPI_Request count_ = MPI_REQUEST_NULL;
};

}  // namespace imbrex::mpi::report
