// SPDX-License-Identifier: BSD-3-Clause
// Two tasks that wait for one request: the second wait is refused. Used by the calls that wait.
//
// MPI gives a handle back as soon as it has found its operation complete, inside the call that
// asks, and another thread may have it before the task that waited knows. So a handle alone never
// says that two waits are for one request; docs/design/mpi-facts.md has the argument.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "mpi/check/checks.hpp"

namespace imbrex::mpi::check {

// While it lives the caller waits for these requests; where that is not asked for by IMBREX_CHECK,
// from enter() on: a wait that suspends enters in any case, since that costs little beside it.
class Waiting {
 public:
  // What may become of its handles at this moment.
  enum class State : std::uint8_t {
    open,       // nobody asks MPI for them: each that is entered is this wait's
    asked,      // MPI is asked for them: it may have given some back that are still entered
    at_engine,  // one, for which the engine asks: it is this wait's while it is in its lists
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

  // Does nothing the second time.
  void enter(int count, const MPI_Request requests[]);

  // Not MPI_SUCCESS if another task waits for one of them: then the call must return this. It has
  // been said, and the error handler called.
  [[nodiscard]] int code() const noexcept { return code_; }

  // Called around each question to MPI about the requests by whoever asks it, but not by the engine
  // for a single request. keep_only() is called between them if only some are complete, with those
  // that are still in the array.
  void begin_asking() noexcept { set(State::asked); }
  void end_asking(bool over) noexcept { set(over ? State::over : State::open); }
  void keep_only(int count, const MPI_Request still[]) noexcept;
  // Called before the one request is given to the engine.
  void hand_over() noexcept { set(State::at_engine); }
  void set_over() noexcept { set(State::over); }

  // Under the lock of the table; pairs with set().
  [[nodiscard]] State state() const noexcept { return state_.load(std::memory_order_acquire); }

 private:
  // Release: whoever gets a handle that MPI has given back after this sees the new state.
  void set(State state) noexcept { state_.store(state, std::memory_order_release); }
  void end() noexcept;

  const char* const call_;
  std::atomic<State> state_{State::open};  // by who asks; read by any thread
  std::vector<MPI_Request> requests_;      // those that this one has entered
  int code_ = MPI_SUCCESS;
};

// The code of a Waiting for one request that another task waits for; else MPI_SUCCESS. To be asked
// before MPI is: if the request is complete, MPI would end it for the wrong one.
[[nodiscard]] int second_wait(const char* call, MPI_Request request);

// MPI has just made `request`: a wait that seems to be for it was for another request, which had
// the same handle before.
void forget_waits(MPI_Request request) noexcept;

}  // namespace imbrex::mpi::check
