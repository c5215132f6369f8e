// SPDX-License-Identifier: BSD-3-Clause
// Functions of the program that are called because something has happened: continuations and event
// handlers. They are called without a lock of ours, by a thread that then stands in no task, one
// after the other in each thread.
#pragma once

namespace imbrex::mpi {

struct Handler {
  void (*function)(void* argument);
  void* argument;
  bool may_call_mpi;
};

// Calls it now; if this thread is in one already, after that one. What it throws is named on
// standard error, and lost.
void run_handler(const Handler& handler) noexcept;

// Of the thread and not of the task: nothing suspends inside. Null: it is in none.
struct Running;
extern constinit thread_local Running* running_here;
[[nodiscard]] inline bool in_handler() noexcept { return running_here != nullptr; }

// True if this thread is in a handler that may not call MPI; then `call` is named on standard
// error, and shall return MPI_ERR_OTHER.
[[nodiscard]] bool say_refused(const char* call) noexcept;  // REQUIRES: in_handler()
[[nodiscard]] inline bool refused(const char* call) noexcept {
  return in_handler() && say_refused(call);
}

}  // namespace imbrex::mpi
