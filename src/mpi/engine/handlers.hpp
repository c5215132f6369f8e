// SPDX-License-Identifier: BSD-3-Clause
// Functions of the program that are called for an event: continuations and event handlers. They are
// called without a lock of the library, by a thread that then runs no task, one after the other in
// each thread.
#pragma once

namespace imbrex::mpi {

struct Handler {
  void (*function)(void* argument);
  void* argument;
  bool may_call_mpi;
};

// Calls `handler` now or, if this thread is in a handler already, after that one. An exception is
// named on standard error, and dropped.
void run_handler(const Handler& handler) noexcept;

// Tells race detectors that the caller asks for a handler.
void note_asked_for() noexcept;

// True while this thread is in a handler. The state belongs to the thread and not to a task, since
// nothing suspends in a handler. The function is never inlined, so that no caller keeps an address
// of the thread over a call that does suspend.
[[nodiscard]] bool in_handler() noexcept;

// True if this thread is in a handler that may not call MPI; it has then named `call` on standard
// error, and the call must return MPI_ERR_OTHER.
[[nodiscard]] bool report_refused(const char* call) noexcept;  // REQUIRES: in_handler()
[[nodiscard]] inline bool refused(const char* call) noexcept {
  return in_handler() && report_refused(call);
}

}  // namespace imbrex::mpi
