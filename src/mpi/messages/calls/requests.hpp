// SPDX-License-Identifier: BSD-3-Clause
// The array of requests of one call. A request that stands for an operation of ours is put out of
// the array before MPI sees it, and its result is put in afterwards. Used by completion.cpp.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "mpi/abi/completion_calls.hpp"
#include "mpi/messages/matching/substitute.hpp"
#include "mpi/messages/matching/wait.hpp"

namespace imbrex::mpi::messages {

// The requests of one call, ours apart from MPI's. A test finds what is complete, and may run as a
// question of the engine's; the finish that belongs to it gives the results to the program.
// Thread safety: none.
// Invariants: (1) `mpis_` has the program's requests, and null where `ours_` has an operation.
class Requests {
 public:
  Requests(int count, MPI_Request requests[]);
  // What MPI has freed is given back to the program also where an error handler has thrown.
  ~Requests() { give_back_changed(); }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  [[nodiscard]] std::span<const MPI_Request> mpis() const noexcept { return mpis_; }
  // Called before a test of all requests, which would ask each of ours again and again. Suspends.
  void wait_for_ours(const char* name);
  // Tells `waiting` which of MPI's are still there.
  void keep_waiting(check::Waiting& waiting) const noexcept {
    waiting.keep_only(count_, mpis_.data());
  }

  // `waiting` is what remains of earlier tests by the same call; null: it tests once.
  [[nodiscard]] Outcome test_all(int* done, completion::Testall* waiting);
  [[nodiscard]] int finish_all(int code, MPI_Status statuses[]);

  [[nodiscard]] Outcome test_any(int* done);
  [[nodiscard]] int finish_any(int code, int* index, MPI_Status* status);

  [[nodiscard]] Outcome test_some(int* done);
  [[nodiscard]] int finish_some(int code, int* found, int indices[], MPI_Status statuses[]);

  // These complete nothing, so they need no finish. MPI answers for its own requests, and gives the
  // empty status where none is active.
  [[nodiscard]] int get_status_any(int* index, int* flag, MPI_Status* status);
  [[nodiscard]] int get_status_some(int* found, int indices[], MPI_Status statuses[]);

 private:
  // What poll_until() waits for.
  [[nodiscard]] bool all_ours_done();
  [[nodiscard]] bool any_of_ours_done();
  // Polls once, unless it is so already.
  [[nodiscard]] bool poll_until(bool (Requests::*enough)());
  // MPI's request has completed with that status, or failed with that code.
  void give_back(int i, const MPI_Status& status, int code);
  void give_back(int i);
  // Gives back those that MPI has changed, after an error.
  void give_back_changed();
  // The result of one of ours goes to `statuses_`; its code is returned.
  int take(int i);

  int count_;
  MPI_Request* requests_;
  std::vector<MPI_Request> mpis_;
  std::vector<Substitute*> ours_;
  std::vector<MPI_Status> statuses_;  // by position; of `some`: by order
  std::vector<int> indices_;          // of `some`
  int our_count_ = 0;
  int mpis_count_ = 0;
  std::uint64_t ended_before_ = UINT64_MAX;  // when any_of_ours_done() last found none
  int index_ = MPI_UNDEFINED;
  int found_ = 0;
};

}  // namespace imbrex::mpi::messages
