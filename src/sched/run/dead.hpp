// SPDX-License-Identifier: BSD-3-Clause
// Unreferenced tasks and other completions. A task's memory is reused; before, the objects of the
// program that it still has are destroyed: its result, its exception, its holds. Such a destructor
// is code of the program, and may wait. docs/design/suspension.md says where it runs.
#pragma once

#include "sched/run/runtime_state.hpp"
#include "task/access/accesses.hpp"
#include "task/cycle/node.hpp"

namespace imbrex::sched {

// Reuses `task` if it has no object of the program, which holds for nearly all tasks.
[[nodiscard]] inline bool reuse_if_plain(Worker& worker, Task& task) noexcept;
// Reuses a task that has no object of the program left; or the descriptor of a node, for its next
// instance.
void reuse(Worker& worker, Task& task) noexcept;

// Calls reduce(), and destroys the completions that this leaves unreferenced.
void reduce_to_result(Worker& worker, Task& task) noexcept;

// The last reference to the completion is gone. As act_on() (ready.hpp).
void discard(Worker& worker, detail::Completion& completion) noexcept;
void drop_reference(Worker& worker, detail::Completion& completion) noexcept;

// Leaves `dead`, which are not plain, to a new task that destroys them.
[[gnu::cold, gnu::noinline]] void leave_to_task(Worker& worker, task::ReadyList dead) noexcept;

// Destroys an unreferenced completion, as the running task. Suspends. REQUIRES: there is a current
// worker; for other threads, life/visit.cpp uses the parts below.
void destroy(detail::Completion& completion) noexcept;
void destroy_all(task::Outcome& outcome) noexcept;  // destroys its dead. REQUIRES: it has no ready
                                                    // tasks

// Whether `task` has a result: a task that did not run, or whose body threw, has none.
[[nodiscard]] bool has_result(const Task& task) noexcept;
// Destroys the objects of the program in `task`; its result, too, if `result` says so. Suspends.
void destroy_contents(Task& task, bool result, task::Outcome& outcome) noexcept;
// Destroys everything that a complete `task` has beside its result and its failure.
void reduce(Worker& worker, Task& task, task::Outcome& outcome) noexcept;

// Whether the running code belongs to a task, at a place where it may wait.
[[nodiscard]] bool may_wait(const Worker& worker) noexcept;

// The body of `task` has ended and no future can ask for its result: the task's last action
// destroys it. Suspends. Returns the worker on which the thread goes on, which runs no task.
[[nodiscard, gnu::cold, gnu::noinline]] Worker& destroy_result(Worker& worker, Task& task) noexcept;

// ---- bodies ----------------------------------------------------------------------------------

// For a large task, or a task that has outlived its runtime (life/end.cpp).
[[gnu::cold, gnu::noinline]] void recycle_rare(Worker& worker, Task& task) noexcept;

inline void recycle(Worker& worker, Task& task) noexcept {
  task.state.store(task::State::free, std::memory_order_relaxed);
  if (task.slot_class == 0) [[unlikely]] return recycle_rare(worker, task);
  worker.tasks.give(&task, task.slot_class);
}

// An instance of a node has left a family or a failure behind, and both are gone: the next instance
// may follow.
[[gnu::noinline]] void renew(Worker& worker, Task& task) noexcept;

// False, and without effect, if the task has been held, or a child has failed.
[[nodiscard, gnu::noinline]] bool give_back_if_plain(Worker& worker, task::Family& family) noexcept;

inline bool reuse_if_plain(Worker& worker, Task& task) noexcept {
  const bool has_result = task.ops != nullptr && task.ops->destroy != nullptr;
  if (has_result || task.failure != nullptr) return false;
  if (task.family != nullptr) [[unlikely]] {
    if (!give_back_if_plain(worker, *task.family)) return false;
    if (task::is_node(task)) {
      renew(worker, task);
      return true;
    }
  }
  if (task.accesses != nullptr) task::destroy_accesses(task, worker.small);
  recycle(worker, task);
  return true;
}

}  // namespace imbrex::sched
