// SPDX-License-Identifier: BSD-3-Clause
// Waiting for many tasks: finish, taskwait; stopping them; and giving way: yield.
#pragma once

#include "imbrex/detail/language.hpp"

#include <concepts>
#include <cstdint>
#include <exception>
#include <source_location>
#include <stop_token>
#include <utility>

#include "imbrex/detail/stop.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/error.hpp"

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

/// What a finish() does when a task in it, or its body, has thrown.
enum class OnError : std::uint8_t {
  go_on,  // the other tasks run
  stop    // as Scope::request_stop()
};

struct FinishOptions {
  OnError on_error = OnError::go_on;
};

/// The finish() that has called a body, for code that stops its tasks. A copy may outlive the
/// finish(), and then does nothing. Thread safety: any thread; nothing here suspends.
class Scope {
 public:
  /// For the runtime only.
  explicit Scope(std::stop_source source) noexcept : source_(std::move(source)) {}

  /// Tasks of this finish(), however deep, that have not begun do not begin; their futures hold
  /// Cancelled, and the finish() does not rethrow that. Tasks that run see it by a parameter of
  /// type std::stop_token, and may end early. A wait in MPI, or for a future, goes on. Tasks with
  /// run_after_failure() run all the same. Calls the callbacks of the tokens (std::stop_callback):
  /// they must not wait.
  void request_stop() noexcept { source_.request_stop(); }
  [[nodiscard]] bool stop_requested() const noexcept { return source_.stop_requested(); }
  [[nodiscard]] std::stop_token stop_token() const noexcept { return source_.get_token(); }

 private:
  std::stop_source source_;
};

/// finish() whose tasks can be stopped. With OnError::stop the first exception does that, and is
/// rethrown when the tasks that run have ended. `body` may take a Scope. A finish() within stops
/// together with the one around it. (oneTBB's task_group::cancel(), Trio's cancel scopes.)
template <class F>
  requires(std::invocable<F> || std::invocable<F, Scope>)
void finish(const FinishOptions& options, F&& body,
            const std::source_location& where = std::source_location::current()) {
  detail::ScopeMemory memory;
  Scope scope(detail::open_stoppable_scope(memory, options.on_error == OnError::stop, where));
  std::exception_ptr error;
  try {
    if constexpr (std::invocable<F, Scope>) {
      std::forward<F>(body)(scope);
    } else {
      std::forward<F>(body)();
    }
  } catch (const Cancelled&) {
    if (!scope.stop_requested()) error = std::current_exception();
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    if (options.on_error == OnError::stop) scope.request_stop();
    detail::abandon_scope(memory, error);
  } else {
    error = detail::close_scope(memory);
  }
  if (error) std::rethrow_exception(error);
}
template <class F>
  requires(!std::invocable<F> && std::invocable<F, Scope>)
void finish(F&& body, const std::source_location& where = std::source_location::current()) {
  finish(FinishOptions{}, std::forward<F>(body), where);
}

/// Suspends until the children of the running task are complete, but not their descendants.
/// (OpenMP's taskwait.) Rethrows nothing: ask the futures, or use finish(). An exception that no
/// get() and no finish() has rethrown is printed at the end of the program, which then fails.
inline void taskwait() { detail::wait_children(); }

/// Suspends: all tasks that are ready now run first, whatever their priority, and the worker polls.
inline void yield() { detail::yield(); }

}  // namespace imbrex
