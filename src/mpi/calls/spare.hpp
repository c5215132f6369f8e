// SPDX-License-Identifier: BSD-3-Clause
// Spare threads: they make calls of MPI that may block and have no non-blocking twin, while the
// calling task is suspended. Used by interpose.cpp; ended by init_and_finalize.cpp. Knows no MPI
// call.
#pragma once

#include <atomic>
#include <string_view>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/threads/ship.hpp"
#include "mpi/messages/matching/wait.hpp"

namespace imbrex::mpi {

// Calls `function(arguments)` on a spare thread and returns its result. The spare thread runs no
// task, so functions that MPI calls back (error handlers, attribute functions) cannot suspend.
// REQUIRES: suspends(), spare_threads_allowed(). `name` is a literal. Suspends.
[[nodiscard]] int call_on_spare_thread(const char* name, int (*function)(void* arguments),
                                       void* arguments);

template <class F>
[[nodiscard]] int on_spare_thread(const char* name, F call) {
  return call_on_spare_thread(
      name, [](void* arguments) { return (*static_cast<F*>(arguments))(); }, &call);
}

// False where one thread makes all calls of MPI: a call that blocks it keeps the whole process from
// MPI.
[[nodiscard]] inline bool spare_threads_allowed() noexcept {
  return !switches.ships_calls.load(std::memory_order_relaxed);
}

// For such a process: MPI_SUCCESS if no other code can need MPI until a call without a twin
// returns. That is the case in main while no other task exists and no operation is in flight.
// Otherwise it prints which code may not make the call and what to do, calls the error handler of
// MPI_COMM_WORLD, and the call must return this code.
[[nodiscard]] int refuse_to_block(const char* name);
[[nodiscard]] inline int refuse_where_forbidden(const char* name) {
  return spare_threads_allowed() ? MPI_SUCCESS : refuse_to_block(name);
}

[[nodiscard]] constexpr bool reaches_processes(const std::string_view name) noexcept {
  return name.starts_with("MPI_Comm_spawn") || name == "MPI_Comm_accept" ||
         name == "MPI_Comm_connect" || name == "MPI_Comm_join";
}
// Reading and writing take their time, and depend on no other rank.
[[nodiscard]] constexpr bool works_on_file(const std::string_view name) noexcept {
  return name.starts_with("MPI_File_");
}

// While it lives, reports show that the running task, which blocks its thread, waits in `name`.
class BlockedCall {
 public:
  explicit BlockedCall(const char* const name) noexcept : waits_(!works_on_file(name)) {
    if (waits_) detail::begin_idle(name);
  }
  ~BlockedCall() {
    if (waits_) detail::end_idle();
  }
  BlockedCall(const BlockedCall&) = delete;
  BlockedCall& operator=(const BlockedCall&) = delete;

 private:
  const bool waits_;
};

// Carries out a call that has no twin; `blocking()` is MPI's own function. A program without tasks
// does not use a spare thread (5 microseconds, as much as 50 calls of MPI_Win_flush): nothing waits
// for the blocked thread.
template <class Blocking>
[[nodiscard]] int by_spare_thread(const char* name, Blocking blocking) {
  if (!spare_threads_allowed()) [[unlikely]] {
    const int refused = refuse_to_block(name);
    return refused == MPI_SUCCESS ? blocking() : refused;
  }
  if (reaches_processes(name)) switches.other_processes.store(true, std::memory_order_relaxed);
  if (!suspends()) return blocking();
  const bool is_idle = engine().outstanding().load(std::memory_order_relaxed) == 0 &&
                     detail::only_main_uses_imbrex();
  if (!is_idle) return on_spare_thread(name, blocking);
  const BlockedCall call(name);
  return blocking();
}

// Ends the idle threads, and waits for them. Called before MPI is finalised.
void end_spare_threads() noexcept;

}  // namespace imbrex::mpi
