// SPDX-License-Identifier: BSD-3-Clause
// How a blocking call is carried out: start its non-blocking twin, test once, poll in place while
// nothing else could run, else suspend. Used by interpose.cpp, messages/calls/ and others.
#pragma once

#include <mpi.h>

#include <span>

#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/error_handlers.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/check/checks.hpp"
#include "mpi/check/double_wait.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/lifetime.hpp"

namespace imbrex::mpi {

// True if a blocking call of this thread suspends a task: the library is initialised, and the
// thread runs a task, not a callback.
[[nodiscard]] inline bool suspends() noexcept {
  return in_service() && detail::in_task() &&
         !(switches.some_task_blocks.load(std::memory_order_relaxed) && detail::is_blocking());
}

// True if a thread outside of tasks must poll while it waits: a receive that imbrex matches may
// depend on it, as a receive of MPI would on any thread in MPI.
[[nodiscard]] inline bool must_poll() noexcept { return in_service() && engine().must_feed(); }

// Polls for receives that only a poll brings forward. A thread that tests without success does it,
// since perhaps no other thread does.
inline void poll_for_others() noexcept {
  if (must_poll()) engine().poll();
}

// Each test and probe of the program calls it as its last action: code that loops on them lets
// other tasks run in between, and is named in reports. `call` is a literal. Suspends.
void go_on_asking(const char* call);
// note_answer(), where go_on() calls go_on_asking().
template <class GoOn>
void note_answer(const bool found, GoOn go_on) {
  if (found) {
    detail::asked_with_success();
  } else if (detail::asked_in_vain()) [[unlikely]] {
    go_on();
  }
}
inline void note_answer(const char* call, bool found) {
  note_answer(found, [call] { go_on_asking(call); });
}

// True if this call may block in MPI.
[[nodiscard]] inline bool may_block() noexcept { return !suspends() && !must_poll(); }

// A non-blocking call of MPI that sets *done. It is made in a Callback.
struct Question {
  Outcome (*function)(void* arguments, int* done);
  void* arguments;
  std::span<const MPI_Request> requests = {};  // the requests that it tests, if any; for reports
};

// REQUIRES: `lambda` outlives the question.
template <class F>
[[nodiscard]] Question question(F& lambda) noexcept {
  return {[](void* arguments, int* done) -> Outcome {
            return (*static_cast<F*>(arguments))(done);
          },
          &lambda,
          {}};
}

// Calls the error handler if it is still owed, or was kept; it may throw, so the caller sets its
// own state before. Returns the code for the call to return.
[[nodiscard, gnu::cold]] int end_failed_call(const Call& call, const Outcome& outcome);
[[nodiscard]] inline int end_call(const Call& call, const Outcome& outcome) {
  return outcome.code == MPI_SUCCESS ? MPI_SUCCESS : end_failed_call(call, outcome);
}

// Asks once, then again while this worker has nothing better to do. True once there is an answer;
// false if the task should suspend.
[[nodiscard]] bool ask_in_place(const Call& call, const Question& answer, Outcome* outcome);

// Asks until the answer is yes or an error; returns MPI's code. Suspends in a task, and polls
// elsewhere.
[[nodiscard]] int wait_until(const Call& call, Question answer);

// Waits, as MPI_Wait, for one request that has been tested once without success. `waiting`, if
// there is one, is told of all tests, and may refuse the wait. Suspends.
[[nodiscard]] int wait_pending(const Call& call, MPI_Request& request, MPI_Status* status,
                               check::Waiting* waiting);

// The requests that `operation` tests. REQUIRES: the engine's lock.
[[nodiscard]] std::span<const MPI_Request> requests_of(const Operation& operation) noexcept;

// Calls `is_done` repeatedly, for an operation that imbrex carries out itself. True once the answer
// is yes; false if the task should suspend, for reason_of().
[[nodiscard]] bool ask_until(const Call& call, bool (*is_done)(const void* what), const void* what);
[[nodiscard]] detail::WaitReason reason_of(const Call& call) noexcept;

// Waits until count_down() has been called `count` times. Suspends in a task, polls elsewhere.
class Countdown {
 public:
  explicit Countdown(int count) noexcept : left_(count) {}
  void count_down() noexcept;
  void wait(const Call& call);

 private:
  std::atomic<int> left_;  // any thread; acq_rel: the waiter sees the writes before each call
  detail::EventWord event_;
};

// Starts an operation and waits for it. `start(&request)` returns MPI's code. Suspends in a task.
template <class Start>
[[nodiscard]] int carry_out(const Call& call, MPI_Status* status, Start start) {
  MPI_Request request = MPI_REQUEST_NULL;
  int done = 0;
  Outcome outcome = MPI_SUCCESS;
  {
    const Callback callback(call);
    outcome = start(&request);
    if (outcome.code == MPI_SUCCESS) {
      outcome = completion::Test(call.owes_handler(), &request, &done, status);
    }
  }
  if (done != 0 || outcome.code != MPI_SUCCESS) return end_call(call, outcome);
  return wait_pending(call, request, status, nullptr);
}

// As above, and calls `started()`, in the task, when MPI has been asked to start the operation,
// successfully or not.
template <class Start, class Started>
[[nodiscard]] int carry_out(const Call& call, MPI_Status* status, Start start, Started started) {
  MPI_Request request = MPI_REQUEST_NULL;
  int done = 0;
  Outcome outcome = MPI_SUCCESS;
  {
    const Callback callback(call);
    outcome = start(&request);
  }
  started();
  if (outcome.code == MPI_SUCCESS) {
    const Callback callback(call);
    outcome = completion::Test(call.owes_handler(), &request, &done, status);
  }
  if (done != 0 || outcome.code != MPI_SUCCESS) return end_call(call, outcome);
  return wait_pending(call, request, status, nullptr);
}

// Copies as MPI does for calls that return one status: the error field is unchanged.
void copy_status(const MPI_Status& from, MPI_Status* to) noexcept;

}  // namespace imbrex::mpi
