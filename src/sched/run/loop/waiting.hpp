// SPDX-License-Identifier: BSD-3-Clause
// Waits: how the running task leaves its worker until an event has fired, lets other tasks go
// first, or runs the awaited task itself.
#pragma once

#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// Leaves the worker until `event` has fired, or until the tasks of `scope` are complete. Suspends.
void wait_for(Worker& worker, detail::EventWord& event, const detail::WaitReason& reason) noexcept;
void wait_for(Worker& worker, task::Scope& scope, task::Await what,
              const detail::WaitReason& reason) noexcept;

// Waits for the tasks that the running task, whose family this is, has spawned in all its open
// scopes: code that ends the program within finish() leaves more than one open. Suspends, so the
// worker may be another afterwards.
void await_scopes(task::Family& family, task::Await what,
                  const detail::WaitReason& reason) noexcept;
// await_scopes() for all descendants, when no task spawns any more; also forgets failures.
void await_descendants(task::Family& family, const detail::WaitReason& reason) noexcept;

// Runs `other`, unstarted, on the caller's stack, if that is possible and no other worker has
// claimed it.
[[nodiscard]] bool run_in_place(Worker& worker, Task& other);

// Runs `task`, which has just been spawned in a callback (life/visit.hpp), as a call, in which
// nothing can suspend. Not inlined: code that queues tasks is part of every loop.
[[gnu::cold, gnu::noinline]] void run_where_spawned(Worker& worker, Task& task) noexcept;

// Lets ready tasks run first, as many as rules::tasks_before() says, as long as any are ready. The
// argument is that of a creator; 0: all ready ones go. Suspends if a task is ready.
void give_way(Worker& worker, std::uint64_t half_window) noexcept;
// Lets one other task run first, if any is ready, and returns whether it has. Suspends. `reason`
// lives until the function returns.
[[nodiscard]] bool let_one_go_first(Worker& worker, const detail::WaitReason& reason) noexcept;

}  // namespace imbrex::sched
