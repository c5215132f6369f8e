// SPDX-License-Identifier: BSD-3-Clause
// Records about tasks: for the trace (docs/design/trace-format.md), for the lineage of the runtime
// (task/lineage.hpp), for the order of tasks (trace/happens_before.hpp), and for messages. Called
// where records, times or the order are kept, or where a policy needs the lineage; elsewhere they
// cost one branch at most.
//
// Thread safety: the thread of the given worker, if there is one, calls each function.
#pragma once

#include <atomic>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/observation.hpp"
#include "sched/run/worker.hpp"
#include "task/failure.hpp"
#include "trace/happens_before.hpp"

namespace imbrex::sched {

// ---- messages --------------------------------------------------------------------------------

[[nodiscard]] std::string describe(const Task& task);
// Each text on a line of its own, indented, below a headline.
[[nodiscard]] std::string lines(const std::vector<std::string>& texts);
[[nodiscard]] std::string lines(const task::Untold& untold);  // and the number of the other
                                                              // failures
// Prints the unreported failures outside of any finish(); true if there are any. REQUIRES: no task
// is left, or the process ends without waiting for tasks.
[[nodiscard]] bool report_failures(RuntimeState& runtime);
// report_failures() for all failures, also within a finish(): the program ends.
bool report_all_failures() noexcept;

using task::code_of;
using task::label_of;

}  // namespace imbrex::sched

namespace imbrex::sched::notes {

// ---- events of the running task of `worker` --------------------------------------------------

// The task makes a child.
void creation(Worker& worker, std::uint64_t id, const detail::TaskSpec& spec);
// For the trace alone: the library has made `task`, which is no task's child.
void creation_by_library(Worker& worker, const Task& task);
// The task begins to wait for `other`; the second function: it has waited.
void wait(Worker& worker, detail::Completion& other);
void waited(Worker& worker) noexcept;
// Its completion waits for an event from now on: the event of `source`, if there is one.
void hold(Worker& worker, detail::Completion* source);
// The task ends its access to `address`.
void release(Worker& worker, const void* address);
// For the trace alone: the task asks for the value of `other`.
void asks(Worker& worker, const detail::Completion& other);
// The task opens or ends a finish(), or waits for its children, or for its descendants, too.
// REQUIRES: there is a trace.
void opens_scope(Worker& worker);
void ends_scope(Worker& worker);
void awaits_children(Worker& worker, bool with_descendants);
// For the trace alone: `promise` is set.
void sets(const detail::PromiseState& promise);
// For the trace alone: `joint` is set by all of its parts, or by one.
void joins(const detail::Completion& joint, std::span<detail::Completion* const> parts, bool all);
// For the trace alone: the new `task` runs on workers of this place only; -1: on all.
void bind(Worker& worker, const Task& task, int place);

// ---- events of other tasks -------------------------------------------------------------------

// `task`, new and without accesses, gets its priority.
void mark(Worker& worker, Task& task) noexcept;
// `task` has a higher priority from now on. Not recorded on a thread that imbrex does not know.
void rise(const Task& task, int priority);

// `task` begins: for the trace, or for a policy that learns.
void begins(Worker& worker, Task& task) noexcept;
// begins() for a task that is not queued, but runs where it was made, until leaves().
void enters(Worker& worker, Task& task) noexcept;
void leaves(Worker& worker, Task& task) noexcept;

// The observer of switches; null: none. release: what it points to.
extern std::atomic<const detail::SwitchOps*> switch_ops;
// A started task leaves its worker; it resumes there.
void suspension(Worker& worker, const Task& task, const detail::WaitReason& reason);
void resumption(Worker& worker, const Task& task);

// The body of `task` has ended. The second function then records the tasks that its end makes
// ready, if it is on a trail.
[[nodiscard]] task::Step ends(Worker& worker, Task& task) noexcept;
[[nodiscard]] inline bool notes_end(const Worker& worker, const Task& task) noexcept {
  if (!worker.recorder.watched()) [[likely]] return false;
  return worker.recorder.tracing() || trace::happens_before::is_kept() ||
         worker.flight.has_tasks() ||
         (task.accesses != nullptr && task.accesses->step.trail != 0);
}
void follow(Worker& worker, const task::Step& step, const task::Outcome& outcome) noexcept;

// Running tasks have taught the lineage something. The first worker that looks for another task
// applies it.
void catch_up(Worker& worker) noexcept;

// ---- order, where it is kept -----------------------------------------------------------------

// The running code of `worker`, if its order is known: a task, or main, but no callback, and no
// thread of the program.
[[nodiscard]] trace::happens_before::Code ordered_code(const Worker& worker) noexcept;
// That code is now after: a completion; everything so far; the tasks spawned in `scope`, or all of
// their descendants, too.
void follows(const Worker& worker, const detail::Completion& completion) noexcept;
void follows_everything() noexcept;
void follows(const task::Scope& scope, task::Await what) noexcept;
// It has waited for an event for this reason. A call of MPI tells itself what it has waited for.
void follows(const detail::WaitReason& reason) noexcept;
// It is about to end its access early.
void precedes(const Worker& worker, const void* address, std::size_t bytes) noexcept;

}  // namespace imbrex::sched::notes
