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

// True if this thread is in a handler; `refuses_mpi`: in one that may not call MPI.
[[nodiscard]] bool in_handler() noexcept;
[[nodiscard]] bool refuses_mpi() noexcept;

}  // namespace imbrex::mpi
