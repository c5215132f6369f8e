// SPDX-License-Identifier: BSD-3-Clause
// A loop whose iterations create the same tasks: their graph is built once.
#pragma once

#include "imbrex/detail/language.hpp"

#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <source_location>
#include <type_traits>

#include "imbrex/detail/loops.hpp"
#include "imbrex/task.hpp"

namespace imbrex {

struct IterateOptions {
  // The body creates the same tasks in iteration i as in iteration i - period. A code that swaps
  // two arrays in each iteration has the period 2.
  std::int64_t period = 1;
};

/// Does what `for (i = 0; i < count; ++i) body(i)` within a finish() does, for a body that only
/// creates tasks, and creates the same ones in iteration i as in i - period: tasks with the same
/// names, accesses and captured values. The body is called for one period. Its tasks then run once
/// in each iteration, without being created or looked up again. There is no barrier between
/// iterations: a task runs as soon as the accesses before it have ended. It also waits for its own
/// instance of the iteration before, with all descendants.
///
/// A task learns its iteration by a parameter, launch([](int i) { ... }), or by iteration(). It may
/// do what any task may: wait in MPI, spawn tasks, release accesses early. The body itself must
/// call neither spawn(), finish(), taskwait() nor iterate(), and its tasks must not name futures,
/// named events or phasers. Error names the task, and then nothing has run.
///
/// If a task throws, no task of a later iteration begins any more; tasks that do not depend on it
/// may have run ahead. The other tasks of its iteration run, except those that follow it. iterate()
/// then rethrows; the text of an Error names the iteration. A count of 0 or below: nothing runs,
/// and the body is not called.
///
/// Suspends until all tasks are complete, with their descendants; a body that creates none is
/// called, and has nothing to repeat. Throws Error for a period below 1 and after shutdown.
/// REQUIRES: the caller is a task, or a thread that may wait. What the body captures, and its tasks
/// capture by reference, lives until iterate() returns. IMBREX_CHECK=1 calls the body for a second
/// period and compares. (Alvarez et al., arXiv 2208.06332: taskiter of OmpSs-2.)
template <class F>
  requires std::invocable<F&, std::int64_t>
void iterate(const std::int64_t count, const IterateOptions& options, F&& body,
             const std::source_location& where = std::source_location::current()) {
  using Function = std::remove_reference_t<F>;
  const std::exception_ptr error = detail::iterate(
      {count, options.period, where, "iterate()"},
      [](void* const argument, const std::int64_t i) { (*static_cast<Function*>(argument))(i); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  if (error) std::rethrow_exception(error);
}
/// With the period 1.
template <class F>
  requires std::invocable<F&, std::int64_t>
void iterate(const std::int64_t count, F&& body,
             const std::source_location& where = std::source_location::current()) {
  iterate(count, IterateOptions{}, std::forward<F>(body), where);
}

/// Returns the iteration that the running task belongs to, or the nearest task above it: from 0 on.
/// -1 outside of iterate(). Any thread; never suspends.
[[nodiscard]] inline std::int64_t iteration() noexcept { return detail::iteration(); }

/// The iteration of the running task is the last of its iterate(). The other tasks of the iteration
/// still run; no task of a later one begins. Any task that decides() (TaskBuilder); never suspends.
/// Throws Error in any other task.
inline void stop_iterating() { detail::stop_iterating(); }

}  // namespace imbrex
