// SPDX-License-Identifier: BSD-3-Clause
// Reports, for plug-ins that watch the workers.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "base/threads/looks_on.hpp"
#include "base/threads/threads.hpp"
#include "diagnosis/facts.hpp"
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

// Keeps the runtime from ending while this lives.
class Watched {
 public:
  Watched() : guard_(sched::end_lock()), runtime_(sched::runtime()) {}
  [[nodiscard]] RuntimeState* runtime() const noexcept { return runtime_; }

 private:
  const std::lock_guard<std::mutex> guard_;
  RuntimeState* const runtime_;
};

// Kinds of waits pass the waist as words.
const char* word(const diagnosis::WaitKind kind) noexcept {
  return diagnosis::word_of(kind).data();  // a literal
}

// The code of a task sleeps, in a wait that is not imbrex's.
constexpr const char* blocks_thread = "a lock, or something like it, that blocks its thread";

// Tasks without code of the program: reports do not show them.
class Hidden {
 public:
  explicit Hidden(RuntimeState& runtime) {
    const std::lock_guard guard(runtime.foreign_lock);
    for (const Worker* const worker : runtime.foreign) {
      if (worker->guest || worker->own) roots_.push_back(worker->root);
    }
  }
  [[nodiscard]] bool contains(const Task& task) const {
    return std::ranges::find(roots_, &task) != roots_.end();
  }

 private:
  std::vector<const Task*> roots_;
};

std::vector<const Task*> tasks_that_block(RuntimeState& runtime) {
  std::vector<const Task*> tasks;
  for (const auto& worker : runtime.workers) {
    const Task* const task = worker->task.glance();
    const bool blocks = task != nullptr && !worker->parked.load(std::memory_order_relaxed) &&
                        !worker->in_poller.load(std::memory_order_relaxed) &&
                        !base::futex_sleep_of(worker->thread_id.load(std::memory_order_relaxed))
                             .call.empty();
    if (blocks && worker->task.glance() == task) tasks.push_back(task);
  }
  return tasks;
}

// ---- tasks that ask without success ------------------------------------------------------------

using sched::Asking;

// The question of the task of `worker`, if it asks without success; else empty.
std::string describe_asking(Worker& worker, const Task* const task) {
  const Asking& asking = worker.asking;
  if (worker.task.glance() != task) return {};
  const char* const in_place = asking.in_place.load(std::memory_order_relaxed);
  if (in_place != nullptr) return in_place;
  if (!asking.asks(task)) return {};
  const std::uint64_t ns =
      base::monotonic_ns() - asking.since_ns.load(std::memory_order_relaxed);
  const auto why = [&] {
    switch (asking.keeps.load(std::memory_order_relaxed)) {
      case Asking::Keeps::nobody: return "";
      case Asking::Keeps::in_callback:
        return ", and keeps its thread from other work: MPI calls this function";
      case Asking::Keeps::as_it_blocks:
        return ", and keeps its worker from other tasks: it may not suspend (IMBREX_OMP_SUSPEND)";
      case Asking::Keeps::with_lock:
        return ", and keeps its worker from other tasks: it holds a lock, or is in a critical "
               "region";
    }
    return "";
  };
  const char* const call = asking.call.load(std::memory_order_relaxed);
  return fmt::format("{} repeatedly, without success for {} s{}",
                     call == nullptr ? "it asks" : call, ns / 1'000'000'000u, why());
}

// Whether all running tasks ask without success. A check may come between two tasks that let each
// other go first, and find a task that has not asked yet in its turn, so each counts as asking for
// a while. A task that does other work no longer counts at later checks.
bool only_asks(RuntimeState& runtime) noexcept {
  constexpr std::uint64_t turn_ns = 100'000'000;
  bool any = runtime.asking.load(std::memory_order_relaxed) != 0;
  for (const auto& worker : runtime.workers) {
    const Asking& asking = worker->asking;
    const Task* const task = worker->task.glance();
    const bool in_vain = asking.idles.load(std::memory_order_relaxed) &&
                         (asking.asks(task) || asking.asked_within(turn_ns));
    if (task != nullptr && !in_vain) return false;
    any = any || in_vain;
  }
  return any;
}

// Whether a task that asks without success keeps its worker from ready tasks.
bool keeps_others(const RuntimeState& runtime) noexcept {
  if (runtime.groups.ready() == 0) return false;
  return std::ranges::any_of(runtime.workers, [](const Worker* const worker) {
    return worker->asking.asked_within(Asking::row_lasts_ns) &&
           worker->asking.keeps.load(std::memory_order_relaxed) != Asking::Keeps::nobody;
  });
}

// A resumption of a task that asks is first counted as progress, and a moment later subtracted.
// This function reads the counts in the other order (acquire: pairs with resume_row()), so it
// returns the right value or a larger one; the least of several reads is right.
std::uint64_t progress(const RuntimeState& runtime) noexcept {
  constexpr int looks = 16;
  std::uint64_t least = UINT64_MAX;
  for (int look = 0; look < looks; ++look) {
    std::uint64_t sum = 0;
    for (const auto& worker : runtime.workers) {
      const std::uint64_t turns = worker->asking.turns.load(std::memory_order_acquire);
      sum += worker->asking.answers.get() - turns;
    }
    least = std::min(least, sum + runtime.begun());
    std::this_thread::yield();
  }
  return least;
}

// The question of a task that does not wait, or only for its turn.
std::string asked_for(RuntimeState& runtime, const Task& task) {
  for (const auto& worker : runtime.workers) {
    std::string text = describe_asking(*worker, &task);
    if (!text.empty()) return text;
  }
  return {};
}

// Adds functions of the program that MPI calls outside of tasks.
void add_callbacks(RuntimeState& runtime, std::vector<TaskView>& views) {
  for (const auto& worker : runtime.workers) {
    if (worker->task.glance() != nullptr) continue;
    std::string text = describe_asking(*worker, nullptr);
    if (text.empty()) continue;
    TaskLabel label;
    label.name = "a function that MPI has called";
    views.push_back({label, false, false, text, {{word(diagnosis::WaitKind::asks), text}}});
  }
}

// The result of a read of running tasks.
enum class View : std::uint8_t {
  whole,
  moved,  // a task has begun or resumed meanwhile: their waits are unknown
  early   // a task that asks has just been picked, and will ask as soon as its thread runs
};
// For a view while tasks run. It reads only memory that stays mapped (descriptors, whose names are
// literals, and stacks), under the slab's lock. A reason counts only if no task has begun or
// resumed since: the stack that it lies on was then still the waiting task's.
View try_view_in_motion(RuntimeState& runtime, std::vector<TaskView>& views) {
  std::vector<WaitReason> reasons;
  const std::uint64_t begun = runtime.begun();
  const std::vector<const Task*> on_workers = sched::tasks_on_workers(runtime);
  const std::vector<const Task*> blocked = tasks_that_block(runtime);
  const Hidden hidden(runtime);
  const base::LooksOn looks_on;
  runtime.task_slots.for_each([&](std::byte* const slot) {
    const Task& task = *reinterpret_cast<const Task*>(slot);
    const State state = task.state.load(std::memory_order_acquire);  // pairs with change_state()
    if (state != State::running && state != State::ready && state != State::suspended &&
        state != State::resumable) {
      return;
    }
    if (hidden.contains(task)) return;
    const bool below = sched::is_below(task, on_workers);
    const bool blocks = state == State::running && (task.wishes & Task::blocking) == 0 &&
                        std::ranges::find(blocked, &task) != blocked.end();
    std::string without_wait = below ? sched::waits_in_place : blocks ? blocks_thread : "";
    const char* const kind = word(below    ? diagnosis::WaitKind::other
                                  : blocks ? diagnosis::WaitKind::lock
                                           : diagnosis::WaitKind::asks);
    if (state == State::running && !below && !blocks) without_wait = asked_for(runtime, task);
    // Queued tasks may wait all the same, which the code below finds.
    const WaitReason* const reason = state == State::suspended || state == State::resumable
                                         ? sched::reason_of(task)
                                         : nullptr;
    const bool runs = state != State::suspended && without_wait.empty();
    views.push_back({sched::label_of(task), runs, false, without_wait, {}});
    if (!without_wait.empty()) views.back().waits = {{kind, std::move(without_wait)}};
    reasons.push_back(reason != nullptr ? *reason
                                        : WaitReason{.kind = WaitKind::event, .what = nullptr});
  });
  add_callbacks(runtime, views);
  if (runtime.begun() != begun) return View::moved;
  int ask = 0;
  for (std::size_t index = 0; index < reasons.size(); ++index) {
    if (reasons[index].what == nullptr) continue;
    const bool asks = sched::asks_in_vain(reasons[index]);
    if (views[index].runs && !asks) continue;
    ask += asks ? 1 : 0;
    views[index].runs = false;
    views[index].in_mpi = reasons[index].kind == WaitKind::mpi;
    views[index].waits_for = sched::describe_reason(reasons[index]);
    views[index].waits = {{word(sched::kind_of(reasons[index])), views[index].waits_for}};
  }
  return ask < runtime.asking.load(std::memory_order_relaxed) ? View::early : View::whole;
}

std::vector<TaskView> view_in_motion(RuntimeState& runtime) {
  // Tasks that ask without success resume all the time, but not while this lives.
  struct Still {
    explicit Still(RuntimeState& its_runtime) noexcept : its(its_runtime) {
      its.still.fetch_add(1, std::memory_order_relaxed);
    }
    ~Still() { its.still.fetch_sub(1, std::memory_order_relaxed); }
    Still(const Still&) = delete;
    Still& operator=(const Still&) = delete;
    RuntimeState& its;
  };
  const Still still(runtime);
  constexpr int attempts = 16;
  constexpr int early_ones = 400;  // a thread may have lost its processor for this long
  int moved = 0;
  int early = 0;
  for (;;) {
    // A task that has just resumed shows its question when its next row is over.
    if (moved + early > 0 || runtime.asking.load(std::memory_order_relaxed) != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    std::vector<TaskView> views;
    const View view = try_view_in_motion(runtime, views);
    moved += view == View::moved ? 1 : 0;
    early += view == View::early ? 1 : 0;
    if (view == View::whole || moved == attempts || early == early_ones) return views;
  }
}

}  // namespace

Situation situation() noexcept {
  const Watched watched;
  RuntimeState* const runtime = watched.runtime();
  if (runtime == nullptr) return {.begun = 0, .at_rest = true};
  // The calling worker counts as at rest, because the caller knows its own state.
  const bool at_rest = sched::rests(*runtime, sched::current_worker());
  return {.begun = progress(*runtime),
          .at_rest = at_rest,
          .only_asks = only_asks(*runtime),
          .keeps_others = keeps_others(*runtime),
          .halted = sched::is_halted(*runtime)};
}

std::string standstill(const std::uint64_t waiting_task) {
  const Watched watched;
  return sched::standstill(watched.runtime(), waiting_task);
}

OwnThread::OwnThread() noexcept { base::add_own_thread(base::kernel_thread_id()); }
OwnThread::~OwnThread() { base::remove_own_thread(base::kernel_thread_id()); }

LibraryThreads::LibraryThreads() : before_(base::thread_ids()) {}
LibraryThreads::~LibraryThreads() {
  std::vector<pid_t> threads = base::thread_ids();
  std::erase_if(threads, [this](const pid_t thread) {
    return std::ranges::find(before_, thread) != before_.end() || base::is_own_thread(thread);
  });
  base::add_library_threads(threads);
}

std::vector<std::string> recent_failures() { return task::describe_failed(); }

std::vector<TaskView> view_tasks(const bool at_rest) {
  const Watched watched;
  if (watched.runtime() == nullptr) return {};
  if (!at_rest) return view_in_motion(*watched.runtime());
  std::vector<TaskView> views;
  const Hidden hidden(*watched.runtime());
  for (const auto& [task, waits] : sched::collect(*watched.runtime())) {
    if (hidden.contains(*task)) continue;
    TaskView view{sched::label_of(*task), waits.empty(), false, sched::join(waits)};
    for (const sched::Wait& wait : waits) {
      view.in_mpi = view.in_mpi || wait.mpi;
      view.waits.push_back({word(wait.kind), wait.text, wait.tasks});
    }
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace imbrex::detail
