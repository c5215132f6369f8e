// SPDX-License-Identifier: BSD-3-Clause
// Spare threads: where calls of MPI are made that may block and have no non-blocking twin, while
// the task that makes them is suspended. Used by interpose.cpp; ended by world.cpp. Knows no MPI
// call.
#pragma once

#include "wait.hpp"

namespace imbrex::mpi {

// Calls `function(arguments)` on a spare thread and returns what it returns. There it stands in no
// task: what MPI calls back (error handlers, attribute functions) cannot suspend.
// REQUIRES: suspends(). `name` is a literal. Suspends.
[[nodiscard]] int call_on_spare_thread(const char* name, int (*function)(void* arguments),
                                       void* arguments);

template <class F>
[[nodiscard]] int on_spare_thread(const char* name, F call) {
  return call_on_spare_thread(
      name, [](void* arguments) { return (*static_cast<F*>(arguments))(); }, &call);
}

// What a call does that has no twin; `blocking()` is MPI's own function. A program without tasks is
// spared the way to another thread (5 microseconds, as much as 50 calls of MPI_Win_flush): nothing
// waits for the thread that would be blocked.
template <class Blocking>
[[nodiscard]] int by_spare_thread(const char* name, Blocking blocking) {
  if (!suspends()) return blocking();
  const bool alone = engine().outstanding().load(std::memory_order_relaxed) == 0 &&
                     detail::main_is_alone();
  return alone ? blocking() : on_spare_thread(name, blocking);
}

// From now on such calls in tasks are refused, because of `reason` (a part of a sentence, kept by
// the caller): this MPI may be called by one thread only, say. Called in MPI_Init.
void forbid_spare_threads(const char* reason) noexcept;
[[nodiscard]] bool spare_threads_allowed() noexcept;

// Ends the threads that are idle; waits for them. Called before MPI is finalised.
void end_spare_threads() noexcept;

}  // namespace imbrex::mpi
