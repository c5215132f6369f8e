// SPDX-License-Identifier: BSD-3-Clause
// The order of tasks, for a question of IMBREX_CHECK: does something that the program says put one
// task's action before another's, or only the schedule? Kept as a graph whose edges carry times.
// Used by sched/; knows no task: the caller passes ids, and the addresses of what orders tasks.
// docs/design/races.md has the argument.
//
// In doubt the answer is that the actions are ordered. Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace imbrex::trace::happens_before {

// Whether the order is kept. Written before other threads run; relaxed, since it only shows that.
inline constinit std::atomic<bool> kept{false};
[[nodiscard]] inline bool is_kept() noexcept { return kept.load(std::memory_order_relaxed); }

// The id of a task; `unknown`: code whose order the graph does not know, such as a poller or a
// thread of the program. Everything so far comes before everything that unknown code does.
using Code = std::uint64_t;
inline constexpr Code unknown = 0;

// Everything so far comes before everything later: a runtime begins, whose ids are new, or the keys
// of earlier accesses are not known.
void forget() noexcept;

// `child` is about to be made by `parent`.
void spawn(Code parent, Code child) noexcept;
// Everything that `code` has done comes before everything that follows `key` from now on.
void before(Code code, const void* key) noexcept;
void after(Code code, const void* key) noexcept;
// after() for everything that `other` has done so far.
void follow(Code code, Code other) noexcept;
void follow_everything(Code code) noexcept;
// From now until show() `code` counts as unknown.
void hide(Code code) noexcept;
void show(Code code) noexcept;

// A moment in the life of `code`; 0 if it is unknown.
[[nodiscard]] std::uint64_t mark(Code code) noexcept;
// Whether the program orders `code`, from now on, behind `moment` in the life of `other`.
[[nodiscard]] bool is_after(Code code, Code other, std::uint64_t moment) noexcept;

}  // namespace imbrex::trace::happens_before
