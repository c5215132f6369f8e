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
/// what `body` threw, else the first exception among the tasks; the number of others stands in its
/// text if it is an Error. Where `body` threw, what tasks threw is printed. REQUIRES: the caller is
/// a task, or a thread that may wait.
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
/// (OpenMP's taskwait.) Rethrows nothing: ask the futures, or use finish(). What
/// nobody asks for is printed at the end of the program, which then fails.
inline void taskwait() { detail::wait_children(); }

/// Lets everything that is ready now run first, whatever its priority, and polls. Suspends.
inline void yield() { detail::yield(); }

}  // namespace imbrex
