// SPDX-License-Identifier: BSD-3-Clause
// The array of requests of one call. A request that stands for an operation of this library is
// taken out of the array before MPI sees it, and its result is put in afterwards. Used by
// completion.cpp.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "mpi/abi/completion_calls.hpp"
#include "mpi/messages/matching/substitute.hpp"
#include "mpi/messages/matching/wait.hpp"

namespace imbrex::mpi::messages {

// The requests of one call, separated into MPI's and the library's. A test finds complete ones, and
// may run in a round of the engine; the matching finish gives the results to the program. Thread
// safety: none. Invariant (1): `mpis_` has the program's requests, and null where `ours_` has an
// operation.
class Requests {
 public:
  Requests(int count, MPI_Request requests[]);
  // Requests that MPI has freed are given back to the program even if an error handler has thrown.
  ~Requests() { give_back_changed(); }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  [[nodiscard]] std::span<const MPI_Request> mpis() const noexcept { return mpis_; }
  // Called before a test of all requests, which would test each of the library's again and again.
  // Suspends.
  void wait_for_ours(const char* name);
  // Tells `waiting` which of MPI's requests are still there.
  void keep_waiting(check::Waiting& waiting) const noexcept {
    waiting.keep_only(count_, mpis_.data());
  }

  // `waiting` has the rest of earlier tests by the same call; null: it tests once.
  [[nodiscard]] Outcome test_all(int* done, completion::Testall* waiting);
  [[nodiscard]] int finish_all(int code, MPI_Status statuses[]);

  [[nodiscard]] Outcome test_any(int* done);
  [[nodiscard]] int finish_any(int code, int* index, MPI_Status* status);

  [[nodiscard]] Outcome test_some(int* done);
  [[nodiscard]] int finish_some(int code, int* found, int indices[], MPI_Status statuses[]);

  // These complete nothing, so they need no finish. MPI answers for its own requests, and gives the
  // empty status if none is active.
  [[nodiscard]] int get_status_any(int* index, int* flag, MPI_Status* status);
  [[nodiscard]] int get_status_some(int* found, int indices[], MPI_Status statuses[]);

 private:
  // The condition of poll_until().
  [[nodiscard]] bool all_ours_done();
  [[nodiscard]] bool any_of_ours_done();
  // Polls once, unless the condition holds already.
  [[nodiscard]] bool poll_until(bool (Requests::*enough)());
  // True for an active persistent receive of MPI.
  [[nodiscard]] bool is_posted_persistent(int i) const noexcept;
  [[nodiscard]] Outcome test_some_of_mpis();
  // MPI's request has completed with that status, or failed with that code.
  void give_back(int i, const MPI_Status& status, int code);
  void give_back(int i);
  // Gives back the requests that MPI has changed, after an error.
  void give_back_changed();
  // The result of an operation of the library goes to `statuses_`; returns its code. `code_so_far`:
  // an error if the call has called an error handler already, which it does once.
  int take(int i, int code_so_far);

  int count_;
  MPI_Request* requests_;
  std::vector<MPI_Request> mpis_;
  std::vector<Substitute*> ours_;
  std::vector<MPI_Status> statuses_;  // by position; for `some`: by order
  std::vector<int> indices_;          // for `some`
  int our_count_ = 0;
  int mpis_count_ = 0;
  std::uint64_t ended_before_ = UINT64_MAX;  // time of the last any_of_ours_done() that found none
  int index_ = MPI_UNDEFINED;
  int found_ = 0;
};

}  // namespace imbrex::mpi::messages
