// SPDX-License-Identifier: BSD-3-Clause
// The functions for plug-ins: pollers, waits that poll in place, callbacks.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <mutex>

#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "sched/life/visit.hpp"
#include "sched/life/waits.hpp"
#include "sched/run/dead.hpp"
#include "sched/run/idle.hpp"
#include "sched/run/loop/waiting.hpp"
#include "sched/run/polling.hpp"
#include "sched/run/ready.hpp"
#include "sched/trigger/progress_functions.hpp"

namespace imbrex::detail {

using sched::Worker;

// ---- pollers ---------------------------------------------------------------------------------

void add_poller(Poller& poller) {
  if (sched::is_outside()) return sched::visit_to_spawn([&] { add_poller(poller); });
  locks_matter.store(true, std::memory_order_relaxed);
  sched::add_poller(*sched::current_worker()->runtime, poller);
}

void wake_poller() noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr) {
    return sched::visit(sched::Purpose::passes, [] { wake_poller(); }, [] {});
  }
  sched::wake_poller(*worker);
}

void wake_worker() noexcept {
  if (sched::RuntimeState* const runtime = sched::runtime()) sched::wake_watch(*runtime);
}

void remove_poller(Poller& poller) {
  sched::RuntimeState* const runtime = sched::runtime();
  if (runtime != nullptr) sched::remove_poller(*runtime, poller);
}

WorkerPolls worker_polls() noexcept {
  const sched::RuntimeState* const runtime = sched::runtime();
  if (runtime == nullptr) return {};
  const auto us_of = [](const std::uint64_t ticks) {
    return static_cast<std::uint64_t>(static_cast<double>(ticks) / base::ticks_per_microsecond());
  };
  const std::uint64_t last = runtime->last_poll.load(std::memory_order_relaxed);
  const std::uint64_t now = base::ticks();
  return {.age_us = now <= last ? 0 : us_of(now - last),
          .apart_us = us_of(runtime->polls_apart.load(std::memory_order_relaxed))};
}

bool worker_idles() noexcept {
  const sched::RuntimeState* const runtime = sched::runtime();
  return runtime != nullptr && runtime->parking.asleep() != 0;
}

int reserved_processor() noexcept {
  const sched::RuntimeState* const runtime = sched::runtime();
  return runtime == nullptr ? -1 : runtime->reserved;
}

// ---- waits and callbacks ---------------------------------------------------------------------

namespace {

// Asks the runtime for a thread that uses tasks; returns false for other threads.
template <class Question>
[[gnu::cold, gnu::noinline]] bool ask_for_visitor(Question question) noexcept {
  if (sched::known_worker() == nullptr) return false;
  return sched::visit(sched::Purpose::passes, question, [] { return false; });
}

}  // namespace

bool nothing_ready() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr) [[unlikely]] return ask_for_visitor([] { return nothing_ready(); });
  // A task that polls in place would keep its processor from ranks that want one.
  const sched::Lending* const lending = worker->runtime->lending.get();
  if (lending != nullptr && lending->others_want()) return false;
  return worker->runtime->in_place.load(std::memory_order_relaxed) &&
         !worker->has_others() && !worker->some_ready() && !worker->runtime->triggers->active();
}

bool workers_share() noexcept {
  const sched::RuntimeState* const runtime = sched::runtime();
  return runtime != nullptr && runtime->workers_share();
}

bool may_spin(std::uint64_t& last) noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr) [[unlikely]] return ask_for_visitor([&] { return may_spin(last); });
  return sched::may_spin(*worker, last);
}

// ---- repeated polls by the program -----------------------------------------------------------

std::atomic<bool> locks_matter{false};

namespace {

using sched::Asking;

// The processor time of the calling thread.
std::uint64_t used_ns() noexcept {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(used.tv_nsec);
}

// Reads /proc/thread-self/`name` by one system call.
bool read_own(const char* const name, std::array<char, 512>& text) noexcept {
  const int file = ::open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t size = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (size <= 0) return false;
  text[static_cast<std::size_t>(size)] = '\0';
  return true;
}

std::uint64_t number_behind(const char* const text, const char* const name) noexcept {
  const char* const found = std::strstr(text, name);
  return found == nullptr ? 0 : std::strtoull(found + std::strlen(name), nullptr, 10);
}

constexpr std::uint64_t reads_of_a_look = 2;  // the calls of own_use() itself
// The system's statistics of the calling thread.
sched::ThreadUse own_use() noexcept {
  std::array<char, 512> text;
  sched::ThreadUse use;
  if (!read_own("/proc/thread-self/schedstat", text)) return use;
  char* behind = nullptr;
  (void)std::strtoull(text.data(), &behind, 10);
  use.delayed_ns = std::strtoull(behind, nullptr, 10);
  if (!read_own("/proc/thread-self/io", text)) return use;
  use.reads = number_behind(text.data(), "syscr:");
  use.writes = number_behind(text.data(), "syscw:");
  use.known = true;
  return use;
}

// Whether the thread has slept for more than four fifths of a row of `wall_ns`, and read and
// written nothing. A thread that waits for a processor does not sleep, so it does not count as
// waiting.
bool sleeps_between(const sched::ThreadUse& before, const sched::ThreadUse& now,
                    const std::uint64_t wall_ns, const std::uint64_t used_ns) noexcept {
  if (!before.known || !now.known) return false;
  if (now.reads - before.reads > reads_of_a_look || now.writes != before.writes) return false;
  const std::uint64_t awake_ns = used_ns + (now.delayed_ns - before.delayed_ns);
  return wall_ns > awake_ns && wall_ns - awake_ns > 4 * used_ns;
}

// A task that computes, and asks now and then, does not count as waiting. The computing time of a
// short row is not checked, because the system reports it late.
void note_row(Asking& asking, const char* const call) noexcept {
  constexpr std::uint64_t idle_ns_max = 5'000;  // for a question and the work until the next one
  constexpr std::uint64_t row_ns_max = fruitless_asks * idle_ns_max;
  const std::uint64_t now = base::monotonic_ns();
  const bool goes_on = asking.call.load(std::memory_order_relaxed) != nullptr &&
                       asking.task.load(std::memory_order_relaxed) == asking.of;
  if (!goes_on) asking.since_ns.store(now, std::memory_order_relaxed);
  const bool short_row =
      goes_on && now - asking.at_ns.load(std::memory_order_relaxed) < row_ns_max;
  const std::uint64_t used = short_row ? 0 : used_ns();
  // The first long row after short ones tells nothing: the thread may have lost its processor.
  sched::ThreadUse use;
  if (short_row || !goes_on) {
    asking.idles.store(short_row, std::memory_order_relaxed);
  } else if (asking.used_ns != 0) {
    const std::uint64_t used_here = used - asking.used_ns;
    bool idles = used_here < row_ns_max;
    if (!idles) {
      use = own_use();
      const std::uint64_t wall = now - asking.at_ns.load(std::memory_order_relaxed);
      idles = sleeps_between(asking.use, use, wall, used_here);
    }
    asking.idles.store(idles, std::memory_order_relaxed);
  }
  asking.use = use;
  asking.used_ns = used;
  asking.task.store(asking.of, std::memory_order_relaxed);
  asking.call.store(call, std::memory_order_relaxed);
  asking.at_ns.store(now, std::memory_order_relaxed);
}

Asking::Keeps keeps_others(const Worker& worker) noexcept {
  if (in_callback()) return Asking::Keeps::in_callback;
  if ((worker.task->wishes & sched::Task::blocking) != 0) return Asking::Keeps::as_it_blocks;
  return worker.task->locks != 0 ? Asking::Keeps::with_lock : Asking::Keeps::nobody;
}

// The task has resumed, perhaps on another worker, and its row goes on there.
void resume_row(Asking& asking, const sched::Task* const task, const std::uint64_t since,
                const char* const call) noexcept {
  // release: the resumption was counted before; pairs with progress()
  asking.turns.store(asking.turns.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  asking.begin(task);
  asking.used_ns = used_ns();
  asking.use = {};
  asking.since_ns.store(since, std::memory_order_relaxed);
  asking.at_ns.store(base::monotonic_ns(), std::memory_order_relaxed);
  asking.idles.store(true, std::memory_order_relaxed);
  asking.keeps.store(Asking::Keeps::nobody, std::memory_order_relaxed);
  asking.task.store(task, std::memory_order_relaxed);
  asking.call.store(call, std::memory_order_relaxed);
}

}  // namespace

void asked_with_success() noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr) return;
  Asking& asking = worker->asking;
  constexpr unsigned found_max = 1000;
  if (++asking.found < found_max) asking.in_a_row = 0;
  asking.answers.add(1);
  if (asking.call.load(std::memory_order_relaxed) == nullptr) [[likely]] return;
  asking.call.store(nullptr, std::memory_order_relaxed);
}

void go_on_asking(const char* const call, const bool may_suspend) noexcept {
  Worker* const here = sched::current_worker();
  if (here == nullptr) return;
  Worker& worker = *here;
  Asking& asking = worker.asking;
  note_row(asking, call);
  const Asking::Keeps keeps = may_suspend ? keeps_others(worker) : Asking::Keeps::in_callback;
  asking.keeps.store(keeps, std::memory_order_relaxed);
  if (keeps != Asking::Keeps::nobody || worker.foreign() ||
      worker.runtime->still.load(std::memory_order_relaxed) != 0) {
    return;
  }
  if (sched::poll(worker, true) == 0) {
    worker.runtime->last_poll.store(base::ticks(), std::memory_order_relaxed);
  }
  const sched::Task* const task = worker.task;
  const std::uint64_t since = asking.since_ns.load(std::memory_order_relaxed);
  worker.runtime->asking.fetch_add(1, std::memory_order_relaxed);
  const WaitReason reason{.kind = WaitKind::turn, .what = call};
  const bool suspended = sched::let_one_go_first(worker, reason);
  Worker& now = *sched::current_worker();
  if (suspended) resume_row(now.asking, task, since, call);
  now.runtime->asking.fetch_sub(1, std::memory_order_relaxed);
}

void note_lock(const int change) noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr || in_callback()) return;
  constexpr int most = std::numeric_limits<std::uint8_t>::max();
  std::uint8_t& locks = worker->task->locks;
  if (locks == most) return;
  locks = static_cast<std::uint8_t>(std::max(locks + change, 0));
}

// ---- tasks that may run elsewhere ------------------------------------------------------------

namespace {

// The caller takes the entry of `task`. False if another worker was faster; the entry is then used
// up.
bool hold_back(Worker& worker, task::Task& task) noexcept {
  if (!task::claim({&task, false})) {
    sched::drop_reference(worker, task);
    return false;
  }
  task.pending.store(1, std::memory_order_relaxed);  // the caller's count, until give_back()
  task.state.store(task::State::created, std::memory_order_release);
  return true;
}

}  // namespace

std::size_t take_ready(const void* const kind, const std::span<void*> closures) noexcept {
  if (sched::is_outside()) {
    return sched::visit(sched::Purpose::passes, [&] { return take_ready(kind, closures); },
                        [] { return std::size_t{0}; });
  }
  Worker& worker = *sched::current_worker();
  Group& everyone = worker.runtime->groups.everyone();
  const int index = worker.home.group == &everyone ? worker.home.index : sched::no_worker;
  task::Task* tasks[64];
  std::size_t taken = 0;
  for (bool more = kind != nullptr; more && taken != closures.size();) {
    const std::size_t room = std::min(closures.size() - taken, std::size(tasks));
    const std::size_t found = everyone.policy->extract(index, kind, {tasks, room});
    for (std::size_t each = 0; each < found; ++each) {
      if (hold_back(worker, *tasks[each])) closures[taken++] = tasks[each]->closure();
    }
    more = found == room;
  }
  return taken;
}

void give_back(void* const closure) noexcept {
  if (sched::is_outside()) {
    return sched::visit(sched::Purpose::passes, [&] { give_back(closure); }, [] {});
  }
  task::Task& task = task::Task::of_closure(closure);
  task.pending.store(0, std::memory_order_relaxed);
  sched::enqueue(*sched::current_worker(), task, sched::Origin::released);
}

bool only_main_uses_imbrex() noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr || worker->id != 0 || worker->task == nullptr ||
      worker->task != worker->root || worker->task->family != nullptr) {
    return false;
  }
  for (const auto& other : worker->runtime->workers) {
    if (other->joined) return false;
  }
  const std::lock_guard guard(worker->runtime->foreign_lock);
  return std::ranges::all_of(worker->runtime->foreign, [](const Worker* const other) {
    return other->guest || other->own;
  });
}

void begin_idle(const char* const call) noexcept {
  if (Worker* const worker = sched::thread_worker()) {
    worker->asking.in_place.store(call, std::memory_order_relaxed);
    worker->recorder.enter(trace::Activity::idle);
  }
}
void end_idle() noexcept {
  if (Worker* const worker = sched::thread_worker()) {
    worker->asking.in_place.store(nullptr, std::memory_order_relaxed);
    worker->recorder.enter(trace::Activity::task);
  }
}

void enter_callback() noexcept { enter_callback(nullptr); }
void enter_callback(const char* const call) noexcept {
  Worker* const worker = sched::thread_worker();
  if (worker == nullptr) [[unlikely]] {
    sched::CallbacksOutside& outside = sched::callbacks_outside();
    if (outside.count++ == 0 || outside.call == nullptr) outside.call = call;
    return;
  }
  sched::turn_to_program(*worker);
  // An inner call has the name of the program's call, if that is known.
  if (worker->callbacks++ == 0 || worker->callback_call == nullptr) worker->callback_call = call;
}
void leave_callback() noexcept {
  Worker* const worker = sched::thread_worker();
  if (worker == nullptr || worker->callbacks == 0) [[unlikely]] {
    if (int& outside = sched::callbacks_outside().count; outside != 0) --outside;
    return;
  }
  if (worker->stand_in != nullptr) [[unlikely]] sched::leave_stand_in(*worker);
  --worker->callbacks;
}
bool in_callback() noexcept {
  const Worker* const worker = sched::thread_worker();
  if (worker == nullptr) return sched::callbacks_outside().count != 0;
  return worker->callbacks != 0 || worker->task == nullptr;
}
const char* callback_call() noexcept {
  const Worker* const worker = sched::thread_worker();
  if (worker != nullptr) return worker->callbacks != 0 ? worker->callback_call : nullptr;
  const sched::CallbacksOutside& outside = sched::callbacks_outside();
  return outside.count != 0 ? outside.call : nullptr;
}

bool in_main() noexcept {
  const Worker* const worker = sched::current_worker();
  return worker != nullptr && worker->id == 0 && worker->callbacks == 0 &&
         worker->task != nullptr && worker->task == worker->root;
}

bool main_is_last() noexcept {
  if (!in_main()) return false;
  bool others = false;
  sched::current_worker()->runtime->task_slots.for_each([&others](std::byte* const slot) {
    const auto& task = *reinterpret_cast<const task::Task*>(slot);
    others = others || (sched::alive(task) && !task.is_root());
  });
  return !others;
}

}  // namespace imbrex::detail
