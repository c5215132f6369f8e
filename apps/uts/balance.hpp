// SPDX-License-Identifier: BSD-3-Clause
// Work between ranks after the benchmark's reference strategy, in plain MPI: who has none asks
// another rank and waits for its answer, two-sided; a token says when all is done.
//
// The token is that of Dijkstra, Feijen and van Gasteren (EWD 840), where messages take no time.
// Here messages take time, so a rank passes the token on only when it has no request open. A
// message in flight to a rank that the token has left was then sent later, by a black rank that the
// token has not reached, or by a rank that got its own work in this way. The white token that comes
// back to a white rank 0 without work or request has thus met no work on its way.
#pragma once

#include <mpi.h>

#include <list>
#include <random>
#include <vector>

#include "search.hpp"

namespace uts {

// Thread safety: one thread at a time.
class Balance {
 public:
  // Collective. REQUIRES: settings.chunk > 0.
  Balance(MPI_Comm comm, const Settings& settings);
  ~Balance();
  Balance(const Balance&) = delete;
  Balance& operator=(const Balance&) = delete;

  [[nodiscard]] bool is_only_rank() const noexcept { return ranks_ == 1; }

  // Answers those who ask: `take(limit, out)` appends what they get, nothing if there is not
  // enough; `limit` nodes fit.
  template <class Take>
  void answer(Take&& take) {
    for (int from = next_request(); from >= 0; from = next_request()) {
      std::vector<Node>& nodes = parcel();
      take(limit_, nodes);
      send_answer(from);
    }
  }

  // Returns how many nodes a stack of `size` nodes can give away; 0 if there are too few.
  [[nodiscard]] std::size_t share_of(std::size_t size, std::size_t limit) const noexcept;

  [[nodiscard]] bool asking() const noexcept { return victim_ >= 0; }
  // REQUIRES: not asking(), not is_only_rank().
  void ask();
  // Returns whether the answer has come; then `out` has the nodes that it brought, perhaps none.
  [[nodiscard]] bool answered(std::vector<Node>& out);

  // Moves the token on. True: no rank has work any more. REQUIRES: not asking(); this rank has
  // none.
  [[nodiscard]] bool ended();
  // After ended(): collective.
  void close();

  [[nodiscard]] std::uint64_t steals() const noexcept { return steals_; }
  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }

 private:
  enum Tag { request_tag = 1, answer_tag, token_tag };
  enum Token : int { white, black, end };
  struct Sent {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<Node> nodes;
    int token = white;
  };

  [[nodiscard]] int next_request();  // -1: none is there
  [[nodiscard]] std::vector<Node>& parcel();
  void send_answer(int to);
  void send_token(int token);
  void forget_sent();

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 1;
  const Settings settings_;
  std::size_t limit_ = 0;     // nodes of a message
  MPI_Request request_ = MPI_REQUEST_NULL;  // receives those of others
  MPI_Request token_request_ = MPI_REQUEST_NULL;
  MPI_Request answer_ = MPI_REQUEST_NULL;
  std::vector<Node> answer_nodes_;
  int token_in_ = white;      // received here
  int token_ = white;         // the last token that came
  bool has_token_ = false;
  bool first_round_ = true;   // of rank 0: no token has come back yet
  bool black_ = false;        // has given work away since it last saw the token
  int victim_ = -1;           // who is asked
  int last_victim_ = 0;
  std::list<Sent> sent_;      // until MPI has sent it; the last one may be a parcel that is filled
  std::minstd_rand random_;
  std::uint64_t steals_ = 0;
  std::uint64_t failed_ = 0;
};

}  // namespace uts
