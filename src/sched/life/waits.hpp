// SPDX-License-Identifier: BSD-3-Clause
// The graph of waits between tasks, for reports, and whether a thread that is no worker could still
// change it. The caller ensures that the graph is at rest, except for such threads; values may be a
// moment old.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagnosis/facts.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

[[nodiscard]] inline bool alive(const Task& task) noexcept {
  const task::State state = task.state.load(std::memory_order_acquire);
  return state != task::State::free && state != task::State::complete;
}
[[nodiscard]] const char* state_text(const Task& task) noexcept;

// A task that waits for another one on its own stack is on no worker, and its state is `running`.
// The tasks of each worker, and of each thread of the program, are read as of a moment ago.
inline constexpr const char* waits_in_place = "the end of a task that runs on its stack";
[[nodiscard]] std::vector<const Task*> tasks_on_workers(RuntimeState& runtime);
[[nodiscard]] bool is_below(const Task& task, const std::vector<const Task*>& on_workers);

// One wait of a task.
struct Wait {
  std::string text;
  bool foreign;  // a thread that is no worker could end it
  diagnosis::WaitKind kind = diagnosis::WaitKind::other;
  std::vector<std::uint64_t> tasks = {};  // ids of tasks that must all act first; some at least
  bool mpi = false;
};

using Waits = std::map<Task*, std::vector<Wait>>;  // the waits of each task

[[nodiscard]] Waits collect(RuntimeState& runtime);
// The first eight, joined.
[[nodiscard]] std::string join(const std::vector<Wait>& waits);

// Why a suspended task waits; null if unknown.
[[nodiscard]] const detail::WaitReason* reason_of(const Task& task) noexcept;
// Whether the task has let another go first because it asks without success: it is queued, and
// waits all the same. A task that yields is just ready.
[[nodiscard]] bool asks_in_vain(const detail::WaitReason& reason) noexcept;
[[nodiscard]] diagnosis::WaitKind kind_of(const detail::WaitReason& reason) noexcept;
// Describes `reason` without the objects that it points to.
[[nodiscard]] std::string describe_reason(const detail::WaitReason& reason);

// Whether a thread that is no worker could resume a task that is suspended, has not begun, or has
// ended and is held.
[[nodiscard]] bool foreign_could_resume(const Task& task);
[[nodiscard]] bool foreign_could_begin(Task& task);
[[nodiscard]] bool foreign_could_complete(const Task& task);
// Whether it could complete an object that was handed over to the finish() that the task waits in,
// or that is around it.
[[nodiscard]] bool foreign_could_end_scope(const Task& task);

}  // namespace imbrex::sched
