// SPDX-License-Identifier: BSD-3-Clause
// Stop: a scope whose tasks may be dropped before they begin. A scope made within it, or by a task
// of it, has the same Stop, or one of its own that stops together with it.
//
// Why no task hangs by that: a dropped task ends as any other one does. Its futures fail, its
// accesses end, its followers are dropped in their turn, and its scope counts it.
//
// Thread safety: any thread calls every function. The pointer in a scope is constant once another
// thread knows the scope, and the Stop lives as long as the scope that made it, which outlives all
// others that have it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>

#include "task/access_block.hpp"
#include "task/failure.hpp"
#include "task/scope_counts.hpp"

namespace imbrex::task {

class Stop {
 public:
  // `outer`: of the scope around it; may be null.
  Stop(const Scope& its_scope, Stop* outer, bool stops_on_error);
  ~Stop();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  [[nodiscard]] const std::stop_source& source() const noexcept { return source_; }
  [[nodiscard]] bool is_requested() const noexcept { return source_.stop_requested(); }
  [[nodiscard]] bool is_of(const Scope* const scope) const noexcept { return scope == &scope_; }
  // Its scope has got a failure.
  void note_failure() noexcept {
    if (on_error_) source_.request_stop();
  }
  // That of a task that is dropped: Cancelled. The caller owns the reference.
  [[nodiscard]] Failure& failure() const noexcept { return share(failure_); }

  // No program pays for stops that it does not use.
  [[nodiscard]] static bool some_open() noexcept {
    return open_.load(std::memory_order_relaxed) != 0;
  }

 private:
  static inline constinit std::atomic<int> open_{0};  // any thread; how many exist

  const Scope& scope_;
  const bool on_error_;
  std::stop_source source_;
  Failure& failure_;  // owned
  std::optional<std::stop_callback<std::function<void()>>> with_outer_;
};

// Whether `task`, which is about to begin, is dropped instead.
[[nodiscard]] inline bool is_dropped(const Task& task) noexcept {
  const Stop* const stop = task.scope != nullptr ? task.scope->stop : nullptr;
  return stop != nullptr && stop->is_requested() &&
         !(task.accesses != nullptr && task.accesses->after_failure);
}

}  // namespace imbrex::task
