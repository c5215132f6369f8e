// SPDX-License-Identifier: BSD-3-Clause
// The order of tasks for ThreadSanitizer, in the library's variant for it (trace/races.hpp): spawn,
// dependence, wait and end order tasks; the workers that run them do not.
#pragma once

#include <cstddef>

#include "sched/run/runtime_state.hpp"
#include "trace/races.hpp"

namespace imbrex::sched::task_races {

#if IMBREX_RACES

// While it lives, the calling code acts for `task`, in a context of its own: after all predecessors
// of the task, and before all followers.
class Body {
 public:
  explicit Body(Task& task) noexcept;
  ~Body();
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

 private:
  Task& task_;
  trace::races::Inside inside_;
};

// Calls code of the program, function(argument), on a stack that counts as untouched.
void call(void (*function)(void*), void* argument);
// `task` comes after everything that was done here so far. REQUIRES: no other thread knows the
// task.
void spawn(const Task& task) noexcept;
// The running task ends its access to `address` early, or with `bytes` to that range.
void release(const Task& task, const void* address, std::size_t bytes) noexcept;
// The running task has waited for the tasks spawned in `scope`, or for all descendants.
void waited(const task::Scope& scope, task::Await what) noexcept;
// The result of the unreferenced `task` is about to be destroyed.
void outlive(const Task& task) noexcept;

#else

struct Body {
  explicit Body(Task&) noexcept {}
  ~Body() {}
};
inline void call(void (*const function)(void*), void* const argument) { function(argument); }
inline void spawn(const Task&) noexcept {}
inline void release(const Task&, const void*, std::size_t) noexcept {}
inline void waited(const task::Scope&, task::Await) noexcept {}
inline void outlive(const Task&) noexcept {}

#endif

}  // namespace imbrex::sched::task_races
