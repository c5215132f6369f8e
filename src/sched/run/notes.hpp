// SPDX-License-Identifier: BSD-3-Clause
// The notes that are taken of tasks: for the trace (docs/design/trace-format.md), for the lineage
// of the runtime (task/lineage.hpp), and for people. They are called where records or times are
// kept, or a policy wants the lineage; elsewhere they cost a branch at most.
//
// Thread safety: each by the thread of the worker that it is given, if it is given one.
#pragma once

#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "imbrex/detail/observation.hpp"
#include "sched/run/worker.hpp"
#include "task/failure.hpp"

namespace imbrex::sched {

// ---- for people ------------------------------------------------------------------------------

[[nodiscard]] std::string describe(const Task& task);
// Each text on a line of its own, indented, to follow a headline.
[[nodiscard]] std::string lines(const std::vector<std::string>& texts);
[[nodiscard]] std::string lines(const task::Untold& untold);  // and the number of the others
// Prints the failures that nobody has taken, outside of any finish(); true if there are any.
// REQUIRES: no task is left, or the process ends without waiting for them.
[[nodiscard]] bool report_failures(RuntimeState& runtime);
// The same of all that has failed, within a finish() too, which nobody will take: the program ends.
bool report_all_failures() noexcept;

using task::code_of;
using task::label_of;

}  // namespace imbrex::sched

namespace imbrex::sched::notes {

// ---- what the running task of `worker` does --------------------------------------------------

// It makes a task.
void creation(Worker& worker, std::uint64_t id, const detail::TaskSpec& spec);
// It waits for `other`; it has waited.
void wait(Worker& worker, detail::Completion& other);
void waited(Worker& worker) noexcept;
// Its completion waits for an event from now on, which is that of `source` if there is one.
void hold(Worker& worker, detail::Completion* source);
// It ends its access to `address`.
void release(Worker& worker, const void* address);

// ---- what happens to tasks -------------------------------------------------------------------

// `task`, new and without accesses, gets its priority.
void mark(Worker& worker, Task& task) noexcept;
// `task` has a higher priority since now. Of a thread that imbrex does not know, nothing is kept.
void rise(const Task& task, int priority);

// `task` begins: the trace wants to know, or a policy that learns.
void begins(Worker& worker, Task& task) noexcept;
// The same for a task that is queued nowhere, but run where it was made.
void enters(Worker& worker, Task& task) noexcept;

// A started task leaves its worker; it goes on there.
void suspension(Worker& worker, const Task& task, const detail::WaitReason& reason);
void resumption(Worker& worker, const Task& task);

// The body of `task` has ended. Then what its end has made ready is told, if it stands on a trail.
[[nodiscard]] task::Step ends(Worker& worker, Task& task) noexcept;
[[nodiscard]] inline bool notes_end(const Worker& worker, const Task& task) noexcept {
  if (!worker.recorder.watched()) [[likely]] return false;
  return worker.recorder.tracing() ||
         (task.accesses != nullptr && task.accesses->step.trail != 0);
}
void follow(Worker& worker, const task::Step& step, const task::Outcome& outcome) noexcept;

// Running tasks teach the lineage something. The first worker that looks for another task applies
// it.
void catch_up(Worker& worker) noexcept;

}  // namespace imbrex::sched::notes
