// SPDX-License-Identifier: BSD-3-Clause
// How the look is safe while tasks run: it reads memory that stays mapped, stacks and descriptors,
// under the lock of the slab, which keeps large descriptors. What it has read counts only if the
// task is suspended on that stack before and after, in the same wait.
#include "sched/flight/shown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/check.hpp"
#include "base/job.hpp"
#include "base/threads/looks_on.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

namespace {

// The first places belong to threads that imbrex has not made: main, and so many others.
constexpr std::size_t places_of_threads = 64;

void put(flight::Word& to, const std::uint64_t value) noexcept {
  to.store(value, std::memory_order_relaxed);
}
void put(flight::Word& to, const char* const literal) noexcept {
  put(to, std::uint64_t{reinterpret_cast<std::uintptr_t>(literal)});
}
void count(flight::Word& looks) noexcept {
  put(looks, looks.load(std::memory_order_relaxed) + 1);
}

// Reads before come before reads behind. (ThreadSanitizer does not know bare fences.)
void order_reads() noexcept {
  static std::atomic<int> fence{0};
  fence.fetch_add(0, std::memory_order_acq_rel);
}

// ---- waits -------------------------------------------------------------------------------------

struct Waiting {
  std::uint64_t task = 0;  // id; 0: nothing waits
  std::uint64_t waits = 0;
  const char* name = nullptr;
  std::source_location where = {};
  detail::WaitReason reason = {detail::WaitKind::turn};
};

[[nodiscard]] bool is_suspended_on(const Task& task, const fiber::Fiber& stack) noexcept {
  const task::State state = task.state.load(std::memory_order_acquire);
  return task.fiber == &stack &&
         (state == task::State::suspended || state == task::State::resumable);
}

[[gnu::no_sanitize("address"), gnu::noinline]] Waiting read(const fiber::Fiber& stack) noexcept {
  Waiting it{.waits = stack.waits.load(std::memory_order_acquire)};
  const Task* const task = static_cast<const Task*>(stack.task);
  if (it.waits == 0 || task == nullptr || !is_suspended_on(*task, stack)) return it;
  const auto* const reason = static_cast<const detail::WaitReason*>(stack.reason);
  if (reason == nullptr) return it;
  it.name = task->name;
  it.where = task->where;
  it.reason = *reason;
  const std::uint64_t id = task->id;
  order_reads();
  const bool same = stack.task == task && is_suspended_on(*task, stack) &&
                    stack.waits.load(std::memory_order_relaxed) == it.waits;
  if (same && it.reason.kind != detail::WaitKind::turn) it.task = id;
  return it;
}

// ---- workers -----------------------------------------------------------------------------------

// The task that a worker runs may end meanwhile, and another be made in its memory.
[[nodiscard]] Waiting read(Worker& worker, const Task* const task) noexcept {
  Waiting it;
  if (task == nullptr) return it;
  const std::uint64_t id = task->id;
  it.name = task->name;
  it.where = task->where;
  order_reads();
  if (worker.task.glance() == task && task->id == id) it.task = id;
  return it;
}

void look_at(RuntimeState& runtime, Worker& worker, flight::WorkerNow& now) noexcept {
  const Task* const task = worker.task.glance();
  const Waiting label = read(worker, task);
  put(now.task, label.task);
  put(now.name, label.task == 0 ? nullptr : label.name);
  put(now.file, label.task == 0 ? nullptr : label.where.file_name());
  put(now.line, std::uint64_t{label.task == 0 ? 0 : label.where.line()});
  put(now.tasks, worker.recorder.tasks.get());
  put(now.steals, worker.recorder.steals.get());
  put(now.suspensions, worker.recorder.suspensions.get());
  put(now.polls, worker.recorder.polls.get());
  const bool waits = worker.parked.load(std::memory_order_relaxed) ||
                     (task != nullptr && worker.asking.only_waits(task));
  if (task != nullptr && !waits) {
    count(now.in_task);
  } else if (waits || runtime.groups.ready() == 0) {
    count(now.idle);
  } else {
    count(now.overhead);
  }
}

}  // namespace

void begin_flight(RuntimeState& runtime) {
  if (runtime.options.FLIGHT == "off") return;
  const std::string problem =
      flight::open(static_cast<int>(runtime.workers.size()), runtime.options.FLIGHT_DIR);
  if (!problem.empty() && base::job_rank() == 0) {
    base::report(fmt::format(
        "warning: no flight recorder, so imbrex explain and imbrex top will know nothing of this "
        "run: {}. IMBREX_FLIGHT_DIR names another directory, and IMBREX_FLIGHT=off ends this "
        "warning",
        problem));
  }
  runtime.completed = flight::ring_of(flight::Beside::completed);
  for (const auto& worker : runtime.workers) {
    worker->flight = flight::ring_of(worker->id);
    if (runtime.options.FLIGHT != "tasks") continue;
    worker->flight.take_tasks();
    worker->recorder.watch();
  }
}

FlightLook::FlightLook(RuntimeState& runtime) : runtime_(runtime) {
  const flight::Head* const head = flight::head();
  if (head == nullptr) return;
  seen_.resize(head->sizes.waits);
  resumed_ = flight::ring_of(flight::Beside::resumed);
}

std::chrono::milliseconds FlightLook::again() noexcept {
  flight::Head* const head = flight::head();
  if (head == nullptr) return std::chrono::hours(1);
  const base::LooksOn looks_on;
  runtime_.task_slots.while_held([this] {
    for (const auto& worker : runtime_.workers) {
      flight::WorkerNow* const now = flight::worker(worker->id);
      if (now != nullptr) sched::look_at(runtime_, *worker, *now);
    }
    const auto& main = runtime_.workers[0];
    look_at(0, main->root != nullptr ? &main->native : nullptr);
    look_at_threads();
  });
  look_at_stacks();
  put(head->ready, static_cast<std::uint64_t>(std::max<std::int64_t>(runtime_.groups.ready(), 0)));
  const auto in_flight = count_in_flight.load(std::memory_order_relaxed);
  put(head->in_flight, in_flight != nullptr ? static_cast<std::uint64_t>(in_flight()) : 0);
  flight::tick();
  const bool watched = head->watched_until.load(std::memory_order_relaxed) >
                       head->tenths.load(std::memory_order_relaxed);
  return std::chrono::milliseconds(watched ? 10 : 100);
}

// The lock is held for a few stacks at a time.
void FlightLook::look_at_stacks() {
  constexpr std::size_t few = 64;
  const std::size_t stacks =
      std::min(runtime_.stacks.cut_so_far(), seen_.size() - places_of_threads);
  for (std::size_t first = 0; first < stacks; first += few) {
    runtime_.task_slots.while_held([&] {
      for (std::size_t i = first; i < std::min(first + few, stacks); ++i) {
        look_at(places_of_threads + i, &fiber::fiber_on(runtime_.stacks.stack(i)));
      }
    });
  }
}

// Never waits for this lock while it holds that of the slab: its holder may wait for a thread that
// takes memory. The next look will do.
void FlightLook::look_at_threads() noexcept IMBREX_LOCKS_NOT_SEEN {
  if (!runtime_.foreign_lock.try_lock()) return;
  std::size_t place = 1;
  for (const Worker* const worker : runtime_.foreign) {
    if (place < places_of_threads) look_at(place++, &worker->native);
  }
  runtime_.foreign_lock.unlock();
  for (; place < places_of_threads; ++place) forget(place);
}

void FlightLook::look_at(const std::size_t place, const fiber::Fiber* const stack) noexcept {
  const Waiting now = stack != nullptr ? read(*stack) : Waiting();
  Seen& seen = seen_[place];
  if (now.task == seen.task && now.waits == seen.waits) {
    seen.twice = true;
    return;
  }
  forget(place);
  if (now.task == 0) return;
  flight::begin(*flight::wait_of(place), now.task, now.name, now.where, now.reason);
  seen = {now.task, now.waits, false};
}

void FlightLook::forget(const std::size_t place) noexcept {
  Seen& seen = seen_[place];
  if (seen.task == 0) return;
  flight::Wait& wait = *flight::wait_of(place);
  put(wait.task, std::uint64_t{0});
  if (seen.twice) {
    resumed_.add(detail::FlightEvent::resumed, seen.task,
                 reinterpret_cast<const void*>(wait.what.load(std::memory_order_relaxed)),
                 wait.where.load(std::memory_order_relaxed),
                 wait.bytes.load(std::memory_order_relaxed));
  }
  seen = {};
}

}  // namespace imbrex::sched
