// SPDX-License-Identifier: BSD-3-Clause
// Functions of the program that are called because something has happened: continuations and event
// handlers. They are called without a lock of ours, by a thread that then stands in no task, one
// after the other in each thread.
#pragma once

#include <atomic>

namespace imbrex::mpi {

struct Handler {
  void (*function)(void* argument);
  void* argument;
  bool may_call_mpi;
};

// Calls it now; if this thread is in one already, after that one. What it throws is named on
// standard error, and lost.
void run_handler(const Handler& handler) noexcept;

// True if this thread is in a handler.
[[nodiscard]] bool in_handler() noexcept;

// Threads that are in one. Relaxed: a thread knows whether it is among them itself.
extern std::atomic<int> threads_in_handlers;

// True if this thread is in a handler that may not call MPI; then `call` is named on standard
// error, and shall return MPI_ERR_OTHER.
[[nodiscard]] bool say_refused(const char* call) noexcept;
[[nodiscard]] inline bool refused(const char* call) noexcept {
  return threads_in_handlers.load(std::memory_order_relaxed) != 0 && say_refused(call);
}

}  // namespace imbrex::mpi
