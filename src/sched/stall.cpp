// SPDX-License-Identifier: BSD-3-Clause
// Reports: who waits for what; and the watch that finds out that nothing can ever run again.
//
// The watch looks only when every worker sleeps and finds nothing, twice in a row without a task
// begun in between. Then nobody but a foreign thread changes the graph; what it reads may be a
// moment old. While a plug-in has operations outstanding there is no such stall: the plug-in
// watches them itself, by means of situation() and view_tasks().
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "base/check.hpp"
#include "sched/runtime.hpp"

namespace imbrex::sched {

using detail::CompletionKind;
using task::State;

namespace {

const char* state_text(const Task& task) noexcept {
  switch (task.state.load(std::memory_order_acquire)) {
    case State::free: return "free";
    case State::created: return "not started";
    case State::ready: return "ready";
    case State::running: return "running";
    case State::suspended: return "suspended";
    case State::resumable: return "about to go on";
    case State::ended: return "ended, completion held";
    case State::complete: return "complete";
  }
  return "?";
}

bool alive(const Task& task) noexcept {
  const State state = task.state.load(std::memory_order_acquire);
  return state != State::free && state != State::complete;
}

std::vector<Task*> live_tasks(Runtime& runtime) {
  std::vector<Task*> tasks;
  runtime.task_slots.for_each([&tasks](std::byte* const slot) {
    auto* const task = reinterpret_cast<Task*>(slot);
    if (alive(*task)) tasks.push_back(task);
  });
  return tasks;
}

std::string describe(const detail::Completion& completion) {
  if (task::is_task(completion)) {
    return fmt::format("task {}", sched::describe(static_cast<const Task&>(completion)));
  }
  if (completion.kind == CompletionKind::joint) return "when_all or when_any";
  const auto& promise = static_cast<const detail::PromiseState&>(completion);
  if (completion.kind == CompletionKind::named) {
    return fmt::format("a trigger of {} (named at {}:{})", promise.name, promise.where.file_name(),
                       promise.where.line());
  }
  return fmt::format("promise \"{}\" ({}:{})", promise.name, promise.where.file_name(),
                     promise.where.line());
}

// What `task` waits for, one text each.
struct Wait {
  std::string text;
  bool foreign;  // a thread that is no worker could end it
  bool mpi = false;
};

const detail::WaitReason* reason_of(const Task& task) noexcept {
  const auto* const fiber = static_cast<const fiber::Fiber*>(task.fiber);
  return fiber == nullptr ? nullptr : static_cast<const detail::WaitReason*>(fiber->reason);
}

// `reason` without what it points to.
std::string describe_reason(const detail::WaitReason& reason) {
  if (!reason.mpi) return reason.what;
  return fmt::format("{} (peer {}, tag {}, {} bytes)", reason.what, reason.peer, reason.tag,
                     reason.bytes);
}

Wait suspended_wait(const Task& task) {
  const auto* const reason = reason_of(task);
  if (reason == nullptr) return {"unknown", true};
  if (reason->completion != nullptr) {
    return {describe(*reason->completion), !task::is_task(*reason->completion)};
  }
  std::string text = describe_reason(*reason);
  const bool finish = text == "finish";
  const bool scope = finish || text == "taskwait" || text == "end of the program";
  if (finish && task.family != nullptr) {
    const std::source_location& where = task.family->current->where;
    text += fmt::format(" ({}:{})", where.file_name(), where.line());
  }
  return {text, !scope, reason->mpi};
}

void created_waits(Task& task, std::vector<Wait>& waits) {
  if (task.accesses == nullptr) return;
  for (task::Access& access : task.accesses->accesses()) {
    if (access.kind != detail::AccessKind::after) {
      if (access.mutex != nullptr && access.mutex->owner != nullptr &&
          access.mutex->owner != &task) {
        waits.push_back({"mutexinoutset held by " + sched::describe(*access.mutex->owner), false});
      }
      continue;
    }
    const auto& completion = *static_cast<const detail::Completion*>(access.address);
    if (!completion.event.has_fired()) {
      waits.push_back({describe(completion), !task::is_task(completion)});
    }
  }
}

using Waits = std::map<Task*, std::vector<Wait>>;

Waits collect(Runtime& runtime) {
  Waits waits;
  const std::vector<Task*> tasks = live_tasks(runtime);
  for (Task* const task : tasks) {
    std::vector<Wait>& mine = waits[task];
    const State state = task->state.load(std::memory_order_acquire);
    if (state == State::suspended) mine.push_back(suspended_wait(*task));
    if (state == State::created) created_waits(*task, mine);
    if (state == State::ended) {
      mine.push_back({fmt::format("{} given to release_after", "an event"), true});
    }
  }
  // Edges are stored with the predecessor only.
  for (Task* const task : tasks) {
    task::event::for_each(task->event, [&](const task::Waiter& waiter) {
      const auto found = waiter.by_address() ? waits.find(waiter.task) : waits.end();
      if (found != waits.end()) {
        found->second.push_back({"dependency on task " + sched::describe(*task), false});
      }
    });
  }
  return waits;
}

// The first eight, joined.
std::string join(const std::vector<Wait>& waits) {
  std::string text;
  for (std::size_t index = 0; index < waits.size(); ++index) {
    text += (index == 0 ? "" : ", ") + waits[index].text;
    if (index == 7 && waits.size() > 8) {
      return text + fmt::format(", and {} more", waits.size() - 8);
    }
  }
  return text;
}

void print(const Waits& waits, const char* const headline) {
  constexpr std::size_t lines_max = 100;
  std::string text = headline;
  std::size_t lines = 0;
  for (const auto& [task, mine] : waits) {
    if (mine.empty()) continue;
    if (++lines > lines_max) break;
    text += fmt::format("\n  {}: {}, waits for {}", describe(*task), state_text(*task),
                        join(mine));
  }
  if (lines > lines_max) text += "\n  ... and more tasks";
  base::report(text);
}

// All workers sleep and there is nothing to run or to poll for.
bool at_rest(Runtime& runtime) noexcept {
  if (runtime.outstanding(*current_worker()) || runtime.groups.ready() != 0 ||
      runtime.behind_count.load(std::memory_order_acquire) != 0) {
    return false;
  }
  for (const auto& worker : runtime.workers) {
    const bool self = worker->id == 0;  // who looks
    if ((!self && !worker->parked.load(std::memory_order_acquire)) || !worker->behind.empty() ||
        worker->inbox.load(std::memory_order_acquire) != nullptr) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string describe(const Task& task) { return detail::describe(label_of(task)); }

void watch_for_stall(Runtime& runtime) noexcept {
  if (!at_rest(runtime)) return;
  const std::uint64_t now = base::monotonic_ns();
  const std::uint64_t begun = runtime.begun();
  if (begun != runtime.progress_mark || runtime.last_progress.load() == 0) {
    runtime.progress_mark = begun;
    runtime.last_progress.store(now, std::memory_order_relaxed);
    runtime.stall_reported = false;
    return;
  }
  const Waits waits = collect(runtime);
  bool anyone = false;
  bool foreign = false;
  for (const auto& [task, mine] : waits) {
    for (const Wait& wait : mine) {
      anyone = true;
      foreign = foreign || wait.foreign;
    }
  }
  if (!anyone || !at_rest(runtime) || runtime.begun() != begun) return;
  if (!foreign) {
    print(waits, "stall: no task can ever run again");
    std::abort();
  }
  const std::uint64_t limit = static_cast<std::uint64_t>(runtime.options.STALL_S);
  if (limit == 0 || runtime.stall_reported) return;
  if (now - runtime.last_progress.load(std::memory_order_relaxed) < limit * 1'000'000'000u) return;
  runtime.stall_reported = true;
  const bool abort = runtime.options.STALL == "abort";
  print(waits, fmt::format("no task has run for {} s, and only a thread that is no worker could "
                           "change that{}",
                           limit, abort ? "" : " (IMBREX_STALL=abort would end the program)")
                   .c_str());
  if (abort) std::abort();
}

}  // namespace imbrex::sched

// ---- for plug-ins ----------------------------------------------------------------------------

namespace imbrex::detail {

namespace {

using sched::Runtime;
using sched::Task;
using sched::Worker;
using task::State;

// A runtime that does not end while this lives.
class Watched {
 public:
  Watched() : guard_(sched::end_lock()), runtime_(sched::runtime()) {}
  [[nodiscard]] Runtime* runtime() const noexcept { return runtime_; }

 private:
  const std::lock_guard<std::mutex> guard_;
  Runtime* const runtime_;
};

// A task that waits for one that runs on its own stack stands in no worker, and its state says that
// it runs. What each worker stands in is read as it was a moment ago.
constexpr const char* waits_in_place = "the end of a task that runs on its stack";

std::vector<const Task*> tasks_on_workers(Runtime& runtime) {
  std::vector<const Task*> tasks;
  for (const auto& worker : runtime.workers) tasks.push_back(worker->task.glance());
  const std::lock_guard guard(runtime.foreign_lock);
  for (Worker* const worker : runtime.foreign) tasks.push_back(worker->task.glance());
  return tasks;
}

bool is_below(const Task& task, const std::vector<const Task*>& on_workers) {
  return task.state.load(std::memory_order_acquire) == State::running &&
         std::ranges::find(on_workers, &task) == on_workers.end();
}

// While tasks run: only what lies in memory that is mapped for good (descriptors, whose names are
// literals, and stacks) is looked at, under the slab's lock, and a reason counts only if no task
// has begun or gone on since: then the stack that it lies on was still the waiting task's.
std::vector<TaskView> view_in_motion(Runtime& runtime) {
  std::vector<TaskView> views;
  std::vector<WaitReason> reasons;
  const std::uint64_t begun = runtime.begun();
  const std::vector<const Task*> on_workers = tasks_on_workers(runtime);
  runtime.task_slots.for_each([&](std::byte* const slot) {
    const Task& task = *reinterpret_cast<const Task*>(slot);
    const State state = task.state.load(std::memory_order_acquire);  // pairs with change_state()
    if (state != State::running && state != State::ready && state != State::suspended &&
        state != State::resumable) {
      return;
    }
    const bool below = is_below(task, on_workers);
    const bool runs = state != State::suspended && !below;
    const WaitReason* const reason = state == State::suspended ? sched::reason_of(task) : nullptr;
    views.push_back({sched::label_of(task), runs, false, below ? waits_in_place : ""});
    reasons.push_back(reason != nullptr ? *reason : WaitReason{nullptr});
  });
  if (runtime.begun() != begun) return views;
  for (std::size_t index = 0; index < views.size(); ++index) {
    if (reasons[index].what == nullptr) continue;
    views[index].in_mpi = reasons[index].mpi;
    views[index].waits_for = sched::describe_reason(reasons[index]);
  }
  return views;
}

}  // namespace

Situation situation() noexcept {
  const Watched watched;
  const Runtime* const runtime = watched.runtime();
  if (runtime == nullptr) return {.begun = 0, .at_rest = true};
  Situation now{.begun = runtime->begun(), .at_rest = true};
  if (runtime->groups.ready() != 0 || runtime->behind_count.load(std::memory_order_acquire) != 0) {
    now.at_rest = false;
  }
  for (const auto& worker : runtime->workers) {
    if (worker->task.glance() != nullptr ||
        worker->inbox.load(std::memory_order_acquire) != nullptr) {
      now.at_rest = false;
    }
  }
  return now;
}

bool main_is_last() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr || worker->id != 0 || worker->callbacks != 0 || worker->task == nullptr ||
      worker->task != worker->root) {
    return false;
  }
  bool others = false;
  worker->runtime->task_slots.for_each([&others](std::byte* const slot) {
    const Task& task = *reinterpret_cast<const Task*>(slot);
    others = others || (sched::alive(task) && !task.root);
  });
  return !others;
}

std::vector<TaskView> view_tasks(const bool at_rest) {
  const Watched watched;
  if (watched.runtime() == nullptr) return {};
  if (!at_rest) return view_in_motion(*watched.runtime());
  std::vector<TaskView> views;
  const std::vector<const Task*> on_workers = tasks_on_workers(*watched.runtime());
  for (const auto& [task, waits] : sched::collect(*watched.runtime())) {
    bool in_mpi = false;
    for (const sched::Wait& wait : waits) in_mpi = in_mpi || wait.mpi;
    const bool below = is_below(*task, on_workers);
    views.push_back({sched::label_of(*task), waits.empty() && !below, in_mpi,
                     below ? waits_in_place : sched::join(waits)});
  }
  return views;
}

}  // namespace imbrex::detail
