// SPDX-License-Identifier: BSD-3-Clause
#include "sched/life/blocked.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <system_error>

#include "base/arch.hpp"
#include "base/check.hpp"
#include "base/threads/threads.hpp"
#include "imbrex/detail/observation.hpp"
#include "sched/flight/shown.hpp"
#include "sched/life/life.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

namespace {

std::uint64_t begun_on(const Worker& worker) noexcept {
  return worker.recorder.tasks.get() + worker.recorder.suspensions.get();
}

// Whether something is ready that the thread of `worker` keeps from running.
bool keeps_others(const RuntimeState& runtime, const Worker& worker) noexcept {
  return runtime.groups.ready() != 0 ||
         runtime.behind_count.load(std::memory_order_acquire) != 0 ||
         worker.inbox.load(std::memory_order_acquire) != nullptr;
}

// A worker that imbrex itself puts to sleep runs no task, or is in a poller.
bool is_asleep_in_imbrex(const Worker& worker) noexcept {
  return worker.parked.load(std::memory_order_relaxed) ||
         worker.in_poller.load(std::memory_order_relaxed);
}

// Whether the thread of `worker` sleeps until an event, or for a time. A moment's view.
bool sleeps(const Worker& worker) {
  const pid_t thread = worker.thread_id.load(std::memory_order_relaxed);
  std::string text;
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
  if (!std::getline(file, text)) return false;
  const std::size_t name_end = text.rfind(") ");  // the name may contain anything
  return name_end != std::string::npos && text.compare(name_end + 2, 1, "S") == 0;
}

// Lists the waiting tasks: one of them may hold the lock.
std::string suspended_tasks() {
  constexpr int shown_max = 8;
  std::string text;
  int count = 0;
  for (const detail::TaskView& view : detail::view_tasks(false)) {
    if (view.runs || view.waits_for.empty()) continue;
    if (++count > shown_max) continue;
    text += fmt::format("\n  {}: {}", detail::describe(view.task), view.waits_for);
  }
  if (count > shown_max) text += fmt::format("\n  ... and {} more", count - shown_max);
  return count == 0 ? text : "\n  tasks that wait now:" + text;
}

void report(const Task& task, const std::uint64_t seconds) {
  base::report(fmt::format(
      "task {} has blocked the thread of its worker for {} s: it sleeps in a lock, a condition "
      "variable or the like (a futex). A lock that is held across a wait (MPI_Recv, get(), "
      "finish(), ...) may never be released: release locks before you wait, and order tasks by "
      "their accesses instead (mutexinoutset){}",
      describe(task), seconds, suspended_tasks()));
}

// Whether the thread of `worker` waits in imbrex, or in MPI where imbrex knows of it.
bool waits_in_imbrex(Worker& worker, const std::uint64_t waiting_task) {
  const Task* const task = worker.task.glance();
  if (task == nullptr) return true;
  if (worker.parked.load(std::memory_order_acquire) &&
      task->state.load(std::memory_order_acquire) == task::State::suspended) {
    return true;
  }
  return worker.asking.only_waits(task) || (waiting_task != 0 && task->id == waiting_task);
}

struct KnownThread {
  pid_t id;
  bool waits;
};
// The threads that have a worker. Empty if a function of the program runs outside of any thread.
std::vector<KnownThread> known_threads(RuntimeState& runtime, const std::uint64_t waiting_task) {
  std::vector<KnownThread> known{{life().ending_thread.load(), true}};
  for (const auto& worker : runtime.workers) {
    known.push_back({worker->thread_id.load(), waits_in_imbrex(*worker, waiting_task)});
  }
  const std::lock_guard guard(runtime.foreign_lock);
  for (Worker* const worker : runtime.foreign) {
    if (worker->guest && worker->inside.load(std::memory_order_relaxed)) return {};
    if (worker->guest) continue;
    known.push_back({worker->thread_id.load(), waits_in_imbrex(*worker, waiting_task)});
  }
  return known;
}

}  // namespace

std::string standstill(RuntimeState* const runtime, const std::uint64_t waiting_task) {
  std::vector<KnownThread> known;
  std::string text;
  if (runtime != nullptr) {
    known = known_threads(*runtime, waiting_task);
    if (known.empty()) return {};
    text = "runs\n";
  }
  const std::vector<pid_t> threads = base::thread_ids();
  if (threads.empty()) return {};
  for (const pid_t thread : threads) {
    if (thread == base::kernel_thread_id() || base::is_own_thread(thread) ||
        base::is_library_thread(thread)) {
      continue;
    }
    const auto found = std::ranges::find(known, thread, &KnownThread::id);
    if (found != known.end() && found->waits) {
      text += fmt::format("{} waits\n", thread);
      continue;
    }
    const base::FutexSleep sleep = base::futex_sleep_of(thread);
    if (!sleep.for_good) return {};
    text += fmt::format("{} {}\n", thread, sleep.call);
  }
  return text;
}

void BlockedWatch::begin(RuntimeState& runtime) noexcept {
  if (runtime.options.STALL_S == 0 && !runtime.one_at_a_time && flight::head() == nullptr) return;
  // Signals of the program go to threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this, &runtime] { run(runtime); });
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void BlockedWatch::end() noexcept {
  if (!thread_.joinable()) return;
  ends_.release();
  thread_.join();
}

void BlockedWatch::run(RuntimeState& runtime) {
  const detail::OwnThread own;
  const auto limit_ns = static_cast<std::uint64_t>(runtime.options.STALL_S) * 1'000'000'000u;
  const auto period =
      std::chrono::nanoseconds(std::clamp<std::uint64_t>(limit_ns / 8, 50'000'000, 5'000'000'000));
  const auto longest = runtime.one_at_a_time ? std::chrono::nanoseconds(10'000'000) : period;
  std::vector<Seen> seen;
  std::uint64_t looked_at = base::monotonic_ns();
  FlightLook flight(runtime);
  while (!ends_.try_acquire_for(std::min<std::chrono::nanoseconds>(longest, flight.again()))) {
    if (runtime.one_at_a_time) look_at_turn(runtime);
    const std::uint64_t now = base::monotonic_ns();
    const bool due = now - looked_at >= static_cast<std::uint64_t>(period.count());
    if (limit_ns == 0 || !due) continue;
    looked_at = now;
    seen.resize(runtime.workers.size());
    for (std::size_t index = 0; index < seen.size(); ++index) {
      look(runtime, *runtime.workers[index], seen[index], limit_ns);
    }
    look_at_halt(runtime);
  }
}

// A thread that computes, or waits for a processor or a disk, does not sleep; so a program that
// never blocks has one order for each seed.
void BlockedWatch::look_at_turn(RuntimeState& runtime) {
  constexpr int looks = 5;
  Policy& policy = *runtime.groups.everyone().policy;
  const int turn = policy.size() == 0 ? no_worker : policy.turn();
  if (turn == no_worker) {
    turn_ = {};
    return;
  }
  const Worker& worker = *runtime.workers[static_cast<std::size_t>(turn)];
  const std::uint64_t begun = begun_on(worker);
  if (turn != turn_.worker || begun != turn_.begun || is_asleep_in_imbrex(worker) ||
      !sleeps(worker)) {
    turn_ = {.worker = turn, .begun = begun};
    return;
  }
  if (++turn_.looks < looks) return;
  turn_ = {};
  policy.pass_over(turn);
}

// A thread that two checks in a row find in one sleep has slept between them. If that holds for all
// threads, none was left that could wake another. A message of another rank could: MPI's watch asks
// the other ranks.
void BlockedWatch::look_at_halt(RuntimeState& runtime) {
  const bool decides = life().ranks == 1 && is_halted(runtime);
  std::string now = decides ? standstill(&runtime, 0) : std::string();
  if (!now.empty() && now == halt_) {
    base::report("no thread of this process makes progress: imbrex ends the program "
                 "(IMBREX_STALL=abort)");
    detail::report_all_failures();
    base::abort();
  }
  halt_ = std::move(now);
}

void BlockedWatch::look(RuntimeState& runtime, Worker& worker, Seen& seen,
                        const std::uint64_t limit_ns) {
  const std::uint64_t now = base::monotonic_ns();
  const Task* const task = worker.task.glance();
  const std::uint64_t begun = begun_on(worker);
  if (task == nullptr || task != seen.task || begun != seen.begun) {
    seen = {.task = task, .begun = begun, .call = {}};
    return;
  }
  const pid_t thread = worker.thread_id.load(std::memory_order_relaxed);
  std::string call = is_asleep_in_imbrex(worker) ? "" : base::futex_sleep_of(thread).call;
  if (call.empty() || call != seen.call) {
    seen.call = std::move(call);
    seen.since = now;
    seen.all_begun = runtime.begun();
    seen.reported = false;
    return;
  }
  if (seen.reported || now - seen.since < limit_ns || (task->wishes & Task::blocking) != 0) return;
  const bool at_rest = runtime.begun() == seen.all_begun;
  // The code of a thread may block it, for the end of other threads for example; but not while the
  // worker is needed.
  if (task->is_root() && !(at_rest && keeps_others(runtime, worker))) return;
  seen.reported = true;
  report(*task, (now - seen.since) / 1'000'000'000u);
  if (at_rest) note_halt(runtime);
}

}  // namespace imbrex::sched
