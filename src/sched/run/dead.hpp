// SPDX-License-Identifier: BSD-3-Clause
// Tasks and other completions that nobody refers to any more. A task's memory is used again; but
// first what it still has of the program's is destroyed: its result, what it threw, what it was
// held by. Such a destructor is code of the program's, and may wait. docs/design/suspension.md says
// where it runs.
#pragma once

#include "sched/run/runtime_state.hpp"
#include "task/access/accesses.hpp"

namespace imbrex::sched {

// `task` is used again, if it has nothing of the program's; nearly all tasks are such.
[[nodiscard]] inline bool reuse_if_plain(Worker& worker, Task& task) noexcept;
// The same for a task that has nothing of the program's left.
void reuse(Worker& worker, Task& task) noexcept;

// Does what reduce() does, and destroys what died of it.
void reduce_to_result(Worker& worker, Task& task) noexcept;

// The last reference to it is gone. As act_on() (ready.hpp).
void discard(Worker& worker, detail::Completion& completion) noexcept;
void drop_reference(Worker& worker, detail::Completion& completion) noexcept;

// Leaves `dead`, which are not plain, to a new task that destroys them.
[[gnu::cold, gnu::noinline]] void leave_to_task(Worker& worker, task::ReadyList dead) noexcept;

// Destroys what nobody refers to, as the running task. Suspends. REQUIRES: there is a current
// worker; without one it is for life/visit.cpp, which is made of the parts below.
void destroy(detail::Completion& completion) noexcept;
void destroy_all(task::Outcome& outcome) noexcept;  // its dead. REQUIRES: it has no ready ones.

// Whether `task` has a result: one that did not run, or whose body threw, has none.
[[nodiscard]] bool has_result(const Task& task) noexcept;
// Destroys what `task` has of the program's; its result too if `result` says so. Suspends.
void destroy_contents(Task& task, bool result, task::Outcome& outcome) noexcept;
// Destroys all that a complete `task` has beside its result and its failure.
void reduce(Worker& worker, Task& task, task::Outcome& outcome) noexcept;

// Whether the code that runs is a task's, and at a place where that may wait.
[[nodiscard]] bool may_wait(const Worker& worker) noexcept;

// The body of `task` has ended and nobody can ask for its result: it is destroyed as the last thing
// that the task does. Suspends. The worker on which it goes on, which stands in no task.
[[nodiscard, gnu::cold, gnu::noinline]] Worker& destroy_result(Worker& worker, Task& task) noexcept;

// ---- bodies ----------------------------------------------------------------------------------

// A large one, or one that has outlived its runtime (life/end.cpp).
[[gnu::cold, gnu::noinline]] void recycle_rare(Worker& worker, Task& task) noexcept;

inline void recycle(Worker& worker, Task& task) noexcept {
  task.state.store(task::State::free, std::memory_order_relaxed);
  if (task.slot_class == 0) [[unlikely]] return recycle_rare(worker, task);
  worker.tasks.give(&task, task.slot_class);
}

// False, and nothing done, if it has been held, or a child has failed.
[[nodiscard, gnu::noinline]] bool give_back_if_plain(Worker& worker, task::Family& family) noexcept;

inline bool reuse_if_plain(Worker& worker, Task& task) noexcept {
  const bool has_result = task.ops != nullptr && task.ops->destroy != nullptr;
  if (has_result || task.failure != nullptr) return false;
  if (task.family != nullptr) [[unlikely]] {
    if (!give_back_if_plain(worker, *task.family)) return false;
  }
  if (task.accesses != nullptr) task::destroy_accesses(task, worker.small);
  recycle(worker, task);
  return true;
}

}  // namespace imbrex::sched
