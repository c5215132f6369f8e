// SPDX-License-Identifier: BSD-3-Clause
// What a worker tells the lineage of its runtime, and takes of it: see task/lineage.hpp. Called off
// the common path only.
#pragma once

#include "sched/worker.hpp"

namespace imbrex::sched::lineage {

// `task`, new and without accesses, gets its priority.
void mark(Worker& worker, Task& task) noexcept;

// `task` begins: the trace wants to know, or a policy that learns.
void begins(Worker& worker, Task& task) noexcept;

// The same for one that is queued nowhere, but run where it was made.
void enters(Worker& worker, Task& task) noexcept;

// The running task waits for `other`; it has waited; its completion waits for it.
void wait(Worker& worker, detail::Completion& other);
void waited(Worker& worker) noexcept;
void hold(Worker& worker, detail::Completion& other) noexcept;

// The body of `task` has ended. Then what its end has made ready is told, if it stands on a trail.
[[nodiscard]] task::Step ends(Worker& worker, Task& task) noexcept;
[[nodiscard]] inline bool notes_end(const Worker& worker, const Task& task) noexcept {
  if (!worker.recorder.watched()) [[likely]] return false;
  return worker.recorder.tracing() ||
         (task.accesses != nullptr && task.accesses->step.trail != 0);
}
void follow(Worker& worker, const task::Step& step, const task::Outcome& outcome) noexcept;

// What running tasks have taught is applied by the first worker that looks for another task.
void catch_up(Worker& worker) noexcept;

}  // namespace imbrex::sched::lineage
