// SPDX-License-Identifier: BSD-3-Clause
// Reports, for plug-ins that watch what the workers do.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/waist.hpp"
#include "sched/life/blocked.hpp"
#include "sched/life/visit.hpp"
#include "sched/life/waits.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/ready.hpp"
#include "task/failure.hpp"

namespace imbrex::detail {

namespace {

using sched::RuntimeState;
using sched::Task;
using sched::Worker;
using task::State;

// A runtime that does not end while this lives.
class Watched {
 public:
  Watched() : guard_(sched::end_lock()), runtime_(sched::runtime()) {}
  [[nodiscard]] RuntimeState* runtime() const noexcept { return runtime_; }

 private:
  const std::lock_guard<std::mutex> guard_;
  RuntimeState* const runtime_;
};

// The code of a task sleeps: no wait of imbrex's.
constexpr const char* blocks_thread = "a lock, or something like it, that blocks its thread";

// What has no code of its own: it is no task in a report.
const Task* task_of_guest(RuntimeState& runtime) {
  const std::lock_guard guard(runtime.foreign_lock);
  const auto found = std::ranges::find_if(runtime.foreign, &sched::Worker::guest);
  return found == runtime.foreign.end() ? nullptr : (*found)->root;
}

std::vector<const Task*> tasks_that_block(RuntimeState& runtime) {
  std::vector<const Task*> tasks;
  for (const auto& worker : runtime.workers) {
    const Task* const task = worker->task.glance();
    const bool blocks = task != nullptr && !worker->parked.load(std::memory_order_relaxed) &&
                        !worker->in_poller.load(std::memory_order_relaxed) &&
                        !sched::futex_call(*worker).empty();
    if (blocks && worker->task.glance() == task) tasks.push_back(task);
  }
  return tasks;
}

// For a view while tasks run: only what lies in memory that is mapped for good (descriptors, whose
// names are literals, and stacks) is looked at, under the slab's lock, and a reason counts only if
// no task has begun or gone on since: then the stack that it lies on was still the waiting task's.
std::vector<TaskView> view_in_motion(RuntimeState& runtime) {
  std::vector<TaskView> views;
  std::vector<WaitReason> reasons;
  const std::uint64_t begun = runtime.begun();
  const std::vector<const Task*> on_workers = sched::tasks_on_workers(runtime);
  const std::vector<const Task*> blocked = tasks_that_block(runtime);
  const Task* const of_guest = task_of_guest(runtime);
  runtime.task_slots.for_each([&](std::byte* const slot) {
    const Task& task = *reinterpret_cast<const Task*>(slot);
    const State state = task.state.load(std::memory_order_acquire);  // pairs with change_state()
    if (state != State::running && state != State::ready && state != State::suspended &&
        state != State::resumable) {
      return;
    }
    if (&task == of_guest) return;
    const bool below = sched::is_below(task, on_workers);
    const bool blocks = state == State::running && (task.wishes & Task::blocking) == 0 &&
                        std::ranges::find(blocked, &task) != blocked.end();
    const bool runs = state != State::suspended && !below && !blocks;
    const WaitReason* const reason = state == State::suspended ? sched::reason_of(task) : nullptr;
    const char* const without_wait = below ? sched::waits_in_place : blocks ? blocks_thread : "";
    views.push_back({sched::label_of(task), runs, false, without_wait});
    reasons.push_back(reason != nullptr ? *reason
                                        : WaitReason{.kind = WaitKind::event, .what = nullptr});
  });
  if (runtime.begun() != begun) return views;
  for (std::size_t index = 0; index < views.size(); ++index) {
    if (reasons[index].what == nullptr) continue;
    views[index].in_mpi = reasons[index].kind == WaitKind::mpi;
    views[index].waits_for = sched::describe_reason(reasons[index]);
  }
  return views;
}

}  // namespace

Situation situation() noexcept {
  const Watched watched;
  const RuntimeState* const runtime = watched.runtime();
  if (runtime == nullptr) return {.begun = 0, .at_rest = true};
  // The calling worker counts as at rest: the caller knows itself what it does.
  return {.begun = runtime->begun(), .at_rest = sched::rests(*runtime, sched::current_worker())};
}

std::vector<std::string> recent_failures() { return task::describe_failed(); }

std::vector<TaskView> view_tasks(const bool at_rest) {
  const Watched watched;
  if (watched.runtime() == nullptr) return {};
  if (!at_rest) return view_in_motion(*watched.runtime());
  std::vector<TaskView> views;
  const Task* const of_guest = task_of_guest(*watched.runtime());
  for (const auto& [task, waits] : sched::collect(*watched.runtime())) {
    if (task == of_guest) continue;
    bool in_mpi = false;
    for (const sched::Wait& wait : waits) in_mpi = in_mpi || wait.mpi;
    views.push_back({sched::label_of(*task), waits.empty(), in_mpi, sched::join(waits)});
  }
  return views;
}

}  // namespace imbrex::detail
