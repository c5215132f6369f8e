// SPDX-License-Identifier: BSD-3-Clause
// Letters between the ranks, about reports and about comparisons of IMBREX_CHECK, on a communicator
// of their own, so that no message of the program is touched. Never waits: a rank that does not
// answer does no harm.
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
  request,  // from rank 0: asks for the state of the rank
  answer,   // to rank 0: the text is the state of this rank
  printed,  // from rank 0, to the ranks that asked
  // For check/ranks/: the reports of a rank about the collectives of a communicator, and several of
  // them in one message.
  begun, unordered, ended, several
};

struct Mail {
  Letter letter;
  int from;
  std::string text;
};

// Thread safety: one thread at a time. Invariant (1): the contents of `sending_` and `receiving_`
// do not move while MPI uses them.
class Channel {
 public:
  // Collective over MPI_COMM_WORLD, as is the destructor. `name`: of its communicator.
  explicit Channel(const char* name);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }

  void send(int to, Letter letter, std::string text);
  // The next letter that has arrived completely.
  [[nodiscard]] std::optional<Mail> receive();

  // For the end: begin_end() begins to report that this rank asks no more; all_end() is true once
  // all ranks have reported that.
  void begin_end();
  [[nodiscard]] bool all_end();
  // For an end at which no letter may be lost: begin_count() reports that this rank sends no more;
  // has_all() is true once all ranks have reported that, and receive() has returned all letters to
  // this rank.
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
  std::vector<int> sent_;  // number of letters to each rank
  std::vector<int> counts_;  // of all ranks, one after the other
  std::int64_t received_ = 0;
  MPI_Request count_ = MPI_REQUEST_NULL;
};

}  // namespace imbrex::mpi::report
