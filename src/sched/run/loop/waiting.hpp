// SPDX-License-Identifier: BSD-3-Clause
// Waits: how the running task leaves its worker until something has happened, or lets others go
// first, or runs what it would wait for itself.
#pragma once

#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// Leaves the worker until `event` has fired, or until what `scope` counts is complete. Suspends.
void wait_for(Worker& worker, detail::EventWord& event, const detail::WaitReason& reason) noexcept;
void wait_for(Worker& worker, task::Scope& scope, task::Await what,
              const detail::WaitReason& reason) noexcept;

// Waits for what the running task, whose family this is, has spawned in every scope that it has
// open: whoever ends the program within finish() leaves more than one. Suspends, so the worker may
// be another afterwards.
void await_scopes(task::Family& family, task::Await what,
                  const detail::WaitReason& reason) noexcept;
// The same for all descendants, when nobody spawns any more: failures are forgotten, too.
void await_descendants(task::Family& family, const detail::WaitReason& reason) noexcept;

// Runs `other`, unstarted, on the caller's stack, if that is possible and nobody else has it.
[[nodiscard]] bool run_in_place(Worker& worker, Task& other);

// Runs `task`, which has just been spawned in a callback (life/visit.hpp), as a call: nothing that
// it does can suspend. Not inlined: what queues tasks is part of every loop.
[[gnu::cold, gnu::noinline]] void run_where_spawned(Worker& worker, Task& task) noexcept;

// Lets what is ready run first, and at least `tasks_min` tasks as long as any are ready. Suspends,
// if anything is.
void give_way(Worker& worker, std::uint64_t tasks_min) noexcept;
// Lets one other task run first, if any is ready, and says whether it has. Suspends. `reason` lives
// until it returns.
[[nodiscard]] bool let_one_go_first(Worker& worker, const detail::WaitReason& reason) noexcept;

}  // namespace imbrex::sched
