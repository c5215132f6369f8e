// SPDX-License-Identifier: BSD-3-Clause
// How tasks leave their phasers: at their end, by drop(), or at the end of a finish(). Used by the
// loop, the end of threads, and the waist.
#pragma once

#include "sched/run/runtime_state.hpp"
#include "task/phases.hpp"

namespace imbrex::sched {

// `task` leaves all its phasers; with `finish` only those of that scope. Kept out of the loop,
// which would have to save more registers for it at each task.
[[gnu::cold, gnu::noinline]] void leave_phasers(Worker& worker, Task& task,
                                                const task::Scope* finish,
                                                task::Outcome& outcome) noexcept;
// leave_phasers() for a task that runs, or was to run, on the current worker.
void leave_phasers(Task& task) noexcept;
// The task leaves one phaser. `link` points to the registration in its list.
void leave_phaser(Worker& worker, task::Registration*& link, task::Outcome& outcome) noexcept;

}  // namespace imbrex::sched
