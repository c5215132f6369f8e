// SPDX-License-Identifier: BSD-3-Clause
// Two tasks that wait for one request: the second wait is refused. Used by the calls that wait.
//
// MPI gives a handle back as soon as it has found its operation complete, inside the completion
// call, and another thread may get it before the waiting task knows. A handle alone therefore never
// proves that two waits are for one request; docs/design/mpi-facts.md has the argument.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "mpi/check/checks.hpp"

namespace imbrex::mpi::check {

// While it lives the caller waits for these requests. Without IMBREX_CHECK the wait is entered by
// enter(): a wait that suspends enters in any case, since that costs little beside the suspension.
class Waiting {
 public:
  // The possible changes of its handles at this moment.
  enum class State : std::uint8_t {
    open,       // no thread asks MPI for them: each entered handle belongs to this wait
    asked,      // MPI is asked for them: it may have given back some that are still entered
    at_engine,  // one handle, for which the engine asks: it belongs to this wait while it is in the
                // engine's lists
    over        // the wait has ended, and its caller does not know yet
  };

  Waiting(const char* call, int count, const MPI_Request requests[]) : call_(call) {
    if (on()) [[unlikely]] enter(count, requests);
  }
  ~Waiting() {
    if (!requests_.empty()) [[unlikely]] end();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // No effect the second time.
  void enter(int count, const MPI_Request requests[]);

  // Not MPI_SUCCESS if another task waits for one of the requests: the call must then return this
  // code. The error has been reported, and the error handler called.
  [[nodiscard]] int code() const noexcept { return code_; }

  // Called around each completion call of MPI for the requests by its caller, but not by the engine
  // for a single request. keep_only() is called between them if only some are complete, with the
  // requests that are still in the array.
  void begin_asking() noexcept { set(State::asked); }
  void end_asking(bool over) noexcept { set(over ? State::over : State::open); }
  void keep_only(int count, const MPI_Request still[]) noexcept;
  // Called before the one request is given to the engine.
  void hand_over() noexcept { set(State::at_engine); }
  void set_over() noexcept { set(State::over); }

  // Under the lock of the table; pairs with set().
  [[nodiscard]] State state() const noexcept { return state_.load(std::memory_order_acquire); }

 private:
  // Release: a thread that gets a handle which MPI has given back after this sees the new state.
  void set(State state) noexcept { state_.store(state, std::memory_order_release); }
  void end() noexcept;

  const char* const call_;
  std::atomic<State> state_{State::open};  // the asking thread writes; any thread reads
  std::vector<MPI_Request> requests_;      // the requests that this wait has entered
  int code_ = MPI_SUCCESS;
};

// The error code for a request that another task waits for; else MPI_SUCCESS. Call it before MPI:
// MPI would end a complete request for the wrong task.
[[nodiscard]] int second_wait(const char* call, MPI_Request request);

// MPI has just made `request`: a wait that seems to be for it was for another request, which had
// this handle before.
void forget_waits(MPI_Request request) noexcept;

}  // namespace imbrex::mpi::check
