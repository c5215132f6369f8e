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

namespace imbrex::sched {

// ---- for people ------------------------------------------------------------------------------

[[nodiscard]] std::string describe(const Task& task);
// Each text on a line of its own, indented, to follow a headline.
[[nodiscard]] std::string lines(const std::vector<std::string>& texts);
// Prints the failures that nobody has taken, outside of any finish(); true if there are any.
// REQUIRES: no task is left, or the process ends without waiting for them.
[[nodiscard]] bool report_failures(RuntimeState& runtime);
// The same of all that has failed, within a finish() too, which nobody will take: the program ends.
bool report_all_failures() noexcept;

// The place in the label of a task that a compiler has made and nobody has named: its name there is
// the address of what it runs, to be looked up if somebody wants to know. A label has no word to
// spare: operations of MPI hold one, and few lines of the cache.
inline constexpr std::source_location outlined = std::source_location::current();
// The code of such a task; null for others.
[[nodiscard]] inline const void* code_of(const detail::TaskLabel& label) noexcept {
  const bool is_outlined = label.where.line() == outlined.line() &&
                           std::string_view(label.where.file_name()) == outlined.file_name();
  return is_outlined ? label.name : nullptr;
}
[[nodiscard]] inline detail::TaskLabel label_of(const Task& task) noexcept {
  if (task.where.line() == 0 && task.ops != nullptr && task.ops->code != nullptr &&
      std::string_view(task.name) == "task") [[unlikely]] {
    const void* const code =
        task.ops->code(reinterpret_cast<const std::byte*>(&task) + sizeof(Task));
    if (code != nullptr) return {static_cast<const char*>(code), outlined, task.id};
  }
  return {task.name, task.where, task.id};
}

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
