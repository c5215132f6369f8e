// SPDX-License-Identifier: BSD-3-Clause
// Waiting for many tasks: finish, taskwait; and giving way: yield.
#pragma once

#include "imbrex/detail/language.hpp"

#include <concepts>
#include <exception>
#include <source_location>
#include <utility>

#include "imbrex/detail/waist.hpp"

namespace imbrex {

/// Runs `body`, then suspends until every task spawned in it, however deep, is complete. Rethrows
/// the exception of `body`, else the first exception among the tasks; the text of an Error says how
/// many other tasks threw. Where `body` threw, exceptions of tasks are printed. REQUIRES: the
/// caller is a task, or a thread that may wait.
/// (X10's finish, Chatterjee et al. 2013; OpenMP's taskgroup.)
template <std::invocable F>
void finish(F&& body, const std::source_location& where = std::source_location::current()) {
  detail::ScopeMemory scope;
  detail::open_scope(scope, where);
  std::exception_ptr error;
  try {
    std::forward<F>(body)();
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    detail::abandon_scope(scope, error);
  } else {
    error = detail::close_scope(scope);
  }
  if (error) std::rethrow_exception(error);
}

/// Suspends until the children of the running task are complete, but not their descendants.
/// (OpenMP's taskwait.) Rethrows nothing: ask the futures, or use finish(). An exception that no
/// get() and no finish() has rethrown is printed at the end of the program, which then fails.
inline void taskwait() { detail::wait_children(); }

/// Suspends: all tasks that are ready now run first, whatever their priority, and the worker polls.
inline void yield() { detail::yield(); }

}  // namespace imbrex
