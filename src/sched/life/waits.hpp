// SPDX-License-Identifier: BSD-3-Clause
// The graph of which task waits for what, as reports show it, and whether a thread that is no
// worker could still change it. The caller sees to it that the graph is at rest, but for such
// threads; what is read may be a moment old.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

[[nodiscard]] inline bool alive(const Task& task) noexcept {
  const task::State state = task.state.load(std::memory_order_acquire);
  return state != task::State::free && state != task::State::complete;
}
[[nodiscard]] const char* state_text(const Task& task) noexcept;

// A task that waits for one that runs on its own stack stands in no worker, and its state says that
// it runs. What each worker, and each thread of the program's, stands in is read as it was a moment
// ago.
inline constexpr const char* waits_in_place = "the end of a task that runs on its stack";
[[nodiscard]] std::vector<const Task*> tasks_on_workers(RuntimeState& runtime);
[[nodiscard]] bool is_below(const Task& task, const std::vector<const Task*>& on_workers);

// One thing that a task waits for, as a text.
struct Wait {
  std::string text;
  bool foreign;  // a thread that is no worker could end it
  bool mpi = false;
};

using Waits = std::map<Task*, std::vector<Wait>>;  // what each waits for

[[nodiscard]] Waits collect(RuntimeState& runtime);
// The first eight, joined.
[[nodiscard]] std::string join(const std::vector<Wait>& waits);

// Why a suspended task waits; null where that is not known.
[[nodiscard]] const detail::WaitReason* reason_of(const Task& task) noexcept;
// Whether the task has let another go first as it asks again and again, in vain: it is queued, and
// waits all the same. One that yields is just ready.
[[nodiscard]] bool asks_in_vain(const detail::WaitReason& reason) noexcept;
// `reason` without what it points to.
[[nodiscard]] std::string describe_reason(const detail::WaitReason& reason);

// Whether a thread that is no worker could let a task go on that is suspended, has not begun, or
// has ended and is held.
[[nodiscard]] bool foreign_could_resume(const Task& task);
[[nodiscard]] bool foreign_could_begin(Task& task);
[[nodiscard]] bool foreign_could_complete(const Task& task);
// ... or what was handed over to the finish() that it waits in, or that is around it.
[[nodiscard]] bool foreign_could_end_scope(const Task& task);

}  // namespace imbrex::sched
