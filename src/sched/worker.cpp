// SPDX-License-Identifier: BSD-3-Clause
#include "sched/worker.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "sched/lineage.hpp"
#include "sched/observe/observe.hpp"
#include "sched/runtime.hpp"
#include "task/joint.hpp"

namespace imbrex::sched {

using task::State;
using trace::Activity;

namespace {

constexpr int spares_max = 16;

// ---- finding work ----------------------------------------------------------------------------

[[gnu::noinline]] Task* take_inbox(Worker& worker) noexcept {
  if (worker.inbox_taken == nullptr) {
    if (worker.inbox.load(std::memory_order_relaxed) == nullptr) return nullptr;
    Task* newest = worker.inbox.exchange(nullptr, std::memory_order_acquire);  // pairs with post()
    while (newest != nullptr) {  // oldest first
      Task* const next = newest->next_ready;
      newest->next_ready = worker.inbox_taken;
      worker.inbox_taken = newest;
      newest = next;
    }
  }
  Task* const task = worker.inbox_taken;
  worker.inbox_taken = task->next_ready;
  return task;
}

// A tied task, or one of a native stack, goes back to its own thread and to no other.
void post(Worker& to, Task& task) noexcept {
  if (to.foreign()) {
    to.semaphore.release();
    return;
  }
  Task* head = to.inbox.load(std::memory_order_relaxed);
  do {
    task.next_ready = head;
  } while (!to.inbox.compare_exchange_weak(head, &task, std::memory_order_release,
                                           std::memory_order_relaxed));
  to.runtime->parking.wake(to.id);
}

// One that gave way. `always`: nothing else is ready; else only one whose ticket is up.
[[gnu::noinline]] Task* take_behind(Worker& worker, const bool always) noexcept {
  Runtime& runtime = *worker.runtime;
  if (!worker.behind.empty() && (always || worker.behind.front().ticket <= runtime.begun())) {
    Task* const task = worker.behind.front().task;
    worker.behind.pop_front();
    return task;
  }
  if (runtime.behind_count.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard guard(runtime.behind_lock);
  if (runtime.behind.empty()) return nullptr;
  if (!always && runtime.behind.front().ticket > runtime.begun()) return nullptr;
  Task* const task = runtime.behind.front().task;
  runtime.behind.pop_front();
  runtime.behind_count.fetch_sub(1, std::memory_order_relaxed);
  return task;
}

[[gnu::noinline]] Entry find_elsewhere(Worker& worker, const bool eager) noexcept {
  Runtime& runtime = *worker.runtime;
  if (runtime.lineage.is_behind()) [[unlikely]] lineage::catch_up(worker);
  if (worker.line != nullptr) return find_in_line(worker, eager);
  Membership& place = *worker.membership;
  Policy& policy = *place.group->policy;
  if (const Entry entry = policy.pop(place.index)) return entry;
  if (const Entry entry = find_in_outer_groups(place, eager)) return entry;
  if (place.group->size == 1) return policy.steal(place.index, eager);
  const std::uint64_t begin = base::ticks();
  if (worker.stolen_at != 0) judge_theft(worker, begin, 128 * runtime.brief);
  if (begin < worker.steal_again_at) return {};
  const Entry entry = policy.steal(place.index, eager);
  const std::uint64_t end = base::ticks();
  // What it took longer was a wait for the owner's answer.
  worker.theft_price = std::clamp(end - begin, runtime.brief, 2 * runtime.brief);
  if (entry) {
    worker.recorder.steals.add(1);
    worker.stolen_at = end;
    worker.stolen_before = worker.recorder.tasks.get();
  } else if (end - begin > runtime.brief) {  // somebody was in the way
    worker.steal_again_at = end + 4 * runtime.brief;
  }
  return entry;
}

// From the inbox, or one that gave way.
[[gnu::noinline]] Entry take_others(Worker& worker) noexcept {
  worker.until_others = 16;
  if (Task* const task = take_inbox(worker)) {
    if (worker.inbox_taken != nullptr) worker.until_others = 0;
    return {task, true};
  }
  return {take_behind(worker, false), true};
}

// The next task for `worker`, not yet claimed.
Entry find(Worker& worker, const bool eager) noexcept {
  // Those that gave way get their turn even if new tasks never cease.
  if (worker.inbox.load(std::memory_order_relaxed) != nullptr || worker.until_others-- == 0)
      [[unlikely]] {
    if (const Entry entry = take_others(worker)) return entry;
  }
  if (worker.queues != nullptr) [[likely]] {
    if (const Entry entry = worker.queues->pop()) [[likely]] return entry;
  }
  return find_elsewhere(worker, eager);
}

// As find(), claimed; null if there was nothing.
Task* find_claimed(Worker& worker, const bool eager) noexcept {
  for (;;) {
    Entry entry = find(worker, eager);
    if (!entry && worker.some_gave_way()) {
      if (worker.line != nullptr) worker.steal_again_at = 0;  // behind all that is ready
      if (worker.runtime->workers.size() > 1) entry = find(worker, true);
      if (!entry) entry = {take_behind(worker, true), true};
    }
    if (!entry) return nullptr;
    if (task::claim(entry)) return entry.task;
    drop_reference(worker, *entry.task);  // a stale entry
  }
}

// ---- polling ---------------------------------------------------------------------------------

// Between two tasks of a busy worker. One of those that find it due does it.
void poll_if_due(Worker& worker, const Polling polling) noexcept {
  Runtime& runtime = *worker.runtime;
  if (polling == Polling::none) {
    worker.attends = false;
    return;
  }
  std::uint64_t last = runtime.last_poll.load(std::memory_order_relaxed);
  const std::uint64_t now = base::ticks();
  if (polling == Polling::wanted &&
      now < last + runtime.poll_gap.load(std::memory_order_relaxed)) {
    return;
  }
  if (runtime.last_poll.compare_exchange_strong(last, now, std::memory_order_relaxed)) {
    if (worker.attends) runtime.note_polls_apart(now - std::min(last, now));
    worker.attends = true;
    poll(worker, false);
  }
}

// This worker turns to a task, or blocks: a sleeping one may have to poll in its place. One without
// a processor of its own would take this one's, so not if this worker was back at once last time.
void let_another_poll(Worker& worker) noexcept {
  Runtime& runtime = *worker.runtime;
  if (runtime.parking.asleep() == 0 || runtime.watched.load(std::memory_order_relaxed)) return;
  if (worker.back_at_once && runtime.oversubscribed.load(std::memory_order_relaxed)) return;
  if (runtime.polling(worker) != Polling::none) runtime.parking.wake_one();
}

// ---- idle ------------------------------------------------------------------------------------

// One idle worker at a time polls for all, while something is outstanding. It holds `watched`.
class Watch {
 public:
  explicit Watch(Worker& worker) noexcept : worker_(worker) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // True if this worker shall poll now.
  bool hold() noexcept {
    Runtime& runtime = *worker_.runtime;
    if (runtime.polling(worker_) == Polling::none) {
      drop();
    } else if (!held_ && !runtime.watched.load(std::memory_order_relaxed)) {
      held_ = !runtime.watched.exchange(true, std::memory_order_acquire);
    }
    return held_;
  }

  // Before the worker turns to a task: a sleeper takes over, unless one has been woken since there
  // were `sleepers` of them. It looks for what is left to poll when it is awake.
  void hand_over(const int sleepers) noexcept {
    if (!held_) return;
    drop();
    if (worker_.runtime->parking.asleep() >= sleepers) let_another_poll(worker_);
  }

  void drop() noexcept {
    if (!held_) return;
    held_ = false;
    worker_.runtime->watched.store(false, std::memory_order_release);
  }

 private:
  Worker& worker_;
  bool held_ = false;
};

// True if there are tasks that this worker did not get: their owner was in the way, or it waits
// after a theft that was not worth it.
bool others_have_work(const Worker& worker) noexcept {
  return (worker.queues != nullptr || worker.line != nullptr) && worker.some_ready();
}

// Between two looks of an idle worker. A poll takes as long as a pause.
void take_breath(const Worker& worker, const int round, const bool polls) noexcept {
  const Runtime& runtime = *worker.runtime;
  const int rounds = worker.joined ? 16 : 64;  // the kernel may have put two on one processor
  if (runtime.shared || runtime.workers_share() || round % rounds == rounds - 1) {
    sched_yield();
  } else if (!polls) {
    for (int pause = 0; pause < 8; ++pause) base::pause();
  }
}

// Looks for work until there is a task. Null if the runtime stops, or if this worker should sleep:
// it has looked for as long as an idle worker spins, and is not the one that polls.
Task* look_out(Worker& worker) noexcept {
  Runtime& runtime = *worker.runtime;
  Watch watch(worker);
  // Where a thread polls that has no processor of its own, it shall have this one.
  const bool spins = runtime.in_place.load(std::memory_order_relaxed) || runtime.reserved >= 0;
  const std::uint64_t spin_ticks = spins ? runtime.spin_ticks : 0;
  const std::uint64_t begin = base::ticks();
  worker.back_at_once = begin - worker.left_idle < 40 * runtime.brief;  // what a wake-up costs
  int sleepers = 0;
  const bool alone = runtime.processors.size() == 1;  // nobody else could run a short task sooner
  bool kept_one = false;  // the last poll made a task ready, and woke nobody for it
  std::uint64_t last_look = 0;
  for (int round = 0;; ++round) {
    const std::uint64_t elapsed = base::ticks() - begin;
    const bool eager = elapsed >= runtime.patience ||
                       runtime.oversubscribed.load(std::memory_order_relaxed);
    if (Task* const task = find_claimed(worker, eager)) {
      if (kept_one && worker.some_ready()) wake_neighbour(worker);  // it was another one
      watch.hand_over(sleepers);
      worker.left_idle = begin + elapsed;
      return task;
    }
    sleepers = runtime.parking.asleep();
    const bool polls = watch.hold();
    const bool polls_there = !polls && runtime.watched.load(std::memory_order_relaxed);
    const bool tired = elapsed > spin_ticks ||
                       (polls_there && runtime.oversubscribed.load(std::memory_order_relaxed)) ||
                       (worker.joined && !runtime.may_spin(last_look));
    if (runtime.stopping.load(std::memory_order_acquire) ||
        (tired && !polls && !others_have_work(worker))) {
      watch.drop();
      return nullptr;
    }
    if (polls) {
      runtime.last_poll.store(begin + elapsed, std::memory_order_relaxed);
      worker.keeps = alone && worker.back_at_once ? UINT32_MAX : 1;
      const bool found = poll(worker, true) > 0;
      kept_one = std::exchange(worker.keeps, 0) == 0;
      if (found) continue;
    }
    if (tired) {
      sched_yield();
    } else {
      take_breath(worker, round, polls);
    }
  }
}

Task* sleep(Worker& worker) noexcept {
  Runtime& runtime = *worker.runtime;
  constexpr std::uint64_t look_us = 200'000;  // how often worker 0 looks for a stall
  runtime.parking.prepare(worker.id);
  Task* const task = find_claimed(worker, true);
  if (task != nullptr || runtime.stopping.load(std::memory_order_acquire) ||
      (!runtime.watched.load(std::memory_order_acquire) &&
       runtime.polling(worker) != Polling::none) ||
      others_have_work(worker)) {
    runtime.parking.cancel(worker.id);
    return task;
  }
  worker.parked.store(true, std::memory_order_release);
  const bool woken = runtime.parking.sleep(worker.id, worker.id == 0 ? look_us : 0);
  worker.parked.store(false, std::memory_order_relaxed);
  if (!woken && worker.id == 0) watch_for_stall(runtime);
  return nullptr;
}

// The next task; null only when the runtime stops.
[[gnu::noinline]] Task* idle(Worker& worker) noexcept {
  Runtime& runtime = *worker.runtime;
  worker.recorder.enter(Activity::idle);
  Task* task = nullptr;
  while (task == nullptr && !runtime.stopping.load(std::memory_order_acquire)) {
    task = look_out(worker);
    if (task == nullptr) task = sleep(worker);
  }
  worker.recorder.enter(Activity::overhead);
  return task;
}

// ---- running ---------------------------------------------------------------------------------

// The body of `task` on the caller's stack. Afterwards the thread may be another.
inline void run_body(Worker& worker, Task& task) noexcept {
  worker.task = &task;
  worker.recorder.tasks.add(1);
  worker.recorder.enter(Activity::task);
  if (worker.recorder.watched()) [[unlikely]] lineage::begins(worker, task);
  if (task.accesses != nullptr && task.accesses->has_past &&
      !begin_after_futures(worker, task)) [[unlikely]] {
    return;
  }
  try {
    task.ops->run(task.closure());
  } catch (...) {
    task.error = std::current_exception();
  }
}

// The body has ended.
void end_body(Task& task, task::Tally& tally, task::Outcome& outcome) noexcept {
  if (task.family != nullptr && task.family->table != nullptr) {
    task.family->table->clear(outcome);
  }
  if (task::body_ended(task)) task::complete(task, tally, outcome);
}

// One ready task and nothing else to run: no queue between.
Task* only_one(Worker& worker, task::Outcome& outcome) noexcept {
  Task* const task = outcome.ready.head;
  if (task == nullptr || task->next_ready != nullptr || task->fiber != nullptr ||
      worker.inbox.load(std::memory_order_relaxed) != nullptr ||
      task->group != worker.group) {
    return nullptr;
  }
  const Membership& place = *worker.membership;
  const bool alone = worker.queues != nullptr ? worker.queues->empty()
                                              : place.group->policy->empty(place.index);
  if (!alone) return nullptr;
  outcome.ready.head = nullptr;
  task::change_state(*task, State::created, State::running);  // no entry: nobody else claims it
  return task;
}

// The memory of a task that nobody refers to any more.
void recycle(Worker& worker, Task& task) noexcept {
  task.state.store(State::free, std::memory_order_relaxed);
  if (task.slot_class == 0) [[unlikely]] return worker.runtime->task_slots.give_large(&task);
  worker.tasks.give(&task, task.slot_class);
}

[[gnu::noinline]] void destroy_family(Worker& worker, task::Family& family) noexcept {
  for (task::Hold* hold = family.holds; hold != nullptr;) {
    if (hold->source != nullptr) drop_reference(worker, *hold->source);
    worker.small.give(std::exchange(hold, hold->following), base::slab_class(sizeof(task::Hold)));
  }
  delete family.table;
  family.~Family();
  worker.small.give(&family, base::slab_class(sizeof(task::Family)));
}

// A task has ended in the loop. The one to run next at once, if there is one.
template <bool watched>
Task* finish_as(Worker& worker, Task& task) noexcept {
  task::Outcome outcome;
  [[maybe_unused]] task::Step step{0, 0};
  if constexpr (watched) step = lineage::ends(worker, task);
  if (task::complete_unknown(task, worker.tally, outcome)) {
    if (task.ops->destroy != nullptr) task.ops->destroy(task.closure());
    recycle(worker, task);
    if (outcome.ready.empty() && outcome.dead.empty()) [[likely]] return nullptr;
  } else {
    end_body(task, worker.tally, outcome);
    if constexpr (watched) lineage::follow(worker, step, outcome);
  }
  Task* const next = only_one(worker, outcome);
  if (next != nullptr && next->scope != worker.tally.scope) task::flush(worker.tally, outcome);
  settle(worker, outcome);
  return next;
}
[[gnu::noinline]] Task* finish_watched(Worker& worker, Task& task) noexcept {
  return finish_as<true>(worker, task);
}
Task* finish(Worker& worker, Task& task) noexcept {
  if (lineage::notes_end(worker, task)) [[unlikely]] return finish_watched(worker, task);
  return finish_as<false>(worker, task);
}

// A claimed, unstarted task in the loop; then those it leads to. The worker on which it ends.
[[nodiscard]] Worker& execute(Worker& started_on, Task& first) noexcept {
  Worker* worker = &started_on;
  for (Task* task = &first; task != nullptr;) {
    if (task->tied) worker->fiber->tied_to = worker;
    run_body(*worker, *task);
    worker = current_worker();
    worker->fiber->tied_to = nullptr;
    worker->task = nullptr;
    worker->recorder.enter(Activity::overhead);
    task = finish(*worker, *task);
    poll_if_due(*worker, worker->runtime->polling(*worker));
  }
  return *worker;
}

void keep_spare(fiber::Fiber& left, void* const argument) noexcept {
  Worker& worker = *static_cast<Worker*>(argument);
  if (worker.spare_count < spares_max) {
    left.next = worker.spares;
    worker.spares = &left;
    ++worker.spare_count;
  } else {
    worker.runtime->stacks.give(fiber::destroy_fiber(left));
  }
}

// The running task leaves its stack for that of `next`, if that is a suspended one.
[[gnu::cold, gnu::noinline]] void observe_switch(Worker& worker, const Task* const next) {
  const auto* const reason = static_cast<const detail::WaitReason*>(worker.fiber->reason);
  observe::suspension(worker, *worker.task, *reason);
  if (next != nullptr && next->fiber != nullptr) observe::resumption(worker, *next);
}

// A claimed, suspended task goes on: the fiber to switch to.
fiber::Fiber& wake_up(Worker& worker, Task& task) noexcept {
  auto& target = *static_cast<fiber::Fiber*>(task.fiber);
  task.fiber = nullptr;
  worker.recorder.suspensions.add(1);
  worker.fiber = &target;
  worker.task = &task;
  return target;
}

// Before the worker turns to something else than a task of the same scope.
void flush_tally(Worker& worker) noexcept {
  if (worker.tally.scope == nullptr) return;
  task::Outcome outcome;
  task::flush(worker.tally, outcome);
  settle(worker, outcome);
}

// Leaves the loop for a claimed, suspended task. Returns when this loop is needed again.
void resume(Worker& worker, Task& task) noexcept {
  fiber::Fiber& loop = *worker.fiber;
  if (worker.recorder.timing()) [[unlikely]] observe::resumption(worker, task);
  fiber::switch_to(loop, wake_up(worker, task), worker.exception_globals, &keep_spare, &worker);
}

// The runtime stops. A thread with code of its own gets here only if another one ends the program
// while that code waits.
void stop_here(Worker& worker) noexcept {
  while (worker.id == 0 || worker.joined) ::pause();
  fiber::Fiber& loop = *worker.fiber;
  worker.fiber = &worker.native;
  fiber::switch_to(loop, worker.native, worker.exception_globals, &keep_spare, &worker);
}

// The loop of whichever worker stands here. Never returns: its stack is left, or forgotten.
[[gnu::flatten]] void loop() noexcept {
  for (Worker* here = current_worker();;) {
    Worker& worker = *here;
    Task* task = std::exchange(worker.found, nullptr);
    if (worker.runtime->one_at_a_time) flush_tally(worker);  // before the turn passes on
    if (task == nullptr) task = find_claimed(worker, false);
    if (task == nullptr || task->scope != worker.tally.scope || task->fiber != nullptr) {
      flush_tally(worker);
    }
    if (task == nullptr) task = idle(worker);
    if (task == nullptr) stop_here(worker);  // does not return
    if (task->fiber == nullptr) {
      here = &execute(worker, *task);
    } else {
      resume(worker, *task);
      here = current_worker();
    }
  }
}

[[gnu::noinline]] fiber::Fiber& new_loop(Worker& worker) {
  return fiber::make_fiber(worker.runtime->stacks.take(), worker.runtime->floating_point, &loop);
}

fiber::Fiber& loop_fiber(Worker& worker) {
  if (worker.spares == nullptr) return new_loop(worker);
  fiber::Fiber& spare = *worker.spares;
  worker.spares = spare.next;
  --worker.spare_count;
  return spare;
}

// On the new stack, right after a task has left its own: it may be resumed from now on.
void after_give_way(fiber::Fiber& left, void* const argument) noexcept {
  Task& task = *static_cast<Task*>(left.task);
  Worker& worker = *current_worker();
  Runtime& runtime = *worker.runtime;
  const std::uint64_t tasks_min = *static_cast<const std::uint64_t*>(argument);  // left: read first
  const bool tied = left.tied_to != nullptr;
  task.pending.store(0, std::memory_order_relaxed);
  task::change_state(task, State::suspended, State::resumable);
  if (runtime.one_at_a_time) {
    runtime.groups.everyone().policy->push(task, {worker.id, tied ? worker.id : no_worker},
                                           Origin::yielded);
    return;
  }
  const auto ready = static_cast<std::uint64_t>(worker.membership->group->policy->size());
  const Behind entry{&task, runtime.begun() + std::max(ready, tasks_min)};
  if (tied || runtime.workers.size() == 1) {
    worker.behind.push_back(entry);
    return;
  }
  {
    const std::lock_guard guard(runtime.behind_lock);
    runtime.behind.push_back(entry);
    runtime.behind_count.fetch_add(1, std::memory_order_release);
  }
  runtime.parking.wake_one();
}

// Leaves the running task's stack, straight for that of the next task if it is a suspended one,
// else for a loop; returns when the task is resumed.
void leave(Worker& worker, const fiber::Arrival arrival, void* const argument) noexcept {
  fiber::Fiber& from = *worker.fiber;
  flush_tally(worker);
  // Where one worker runs at a time, a search would pass the turn on too early.
  const bool search = worker.queues != nullptr || !worker.runtime->one_at_a_time;
  Task* const next = search ? find_claimed(worker, false) : nullptr;
  if (next != nullptr) let_another_poll(worker);
  if (worker.recorder.timing()) [[unlikely]] observe_switch(worker, next);
  if (next != nullptr && next->fiber != nullptr) {
    fiber::switch_to(from, wake_up(worker, *next), worker.exception_globals, arrival, argument);
    return;
  }
  worker.found = next;  // the loop starts it
  worker.fiber = &loop_fiber(worker);
  worker.task = nullptr;
  fiber::switch_to(from, *worker.fiber, worker.exception_globals, arrival, argument);
}

}  // namespace

bool Worker::some_gave_way() const noexcept {
  return !behind.empty() || runtime->behind_count.load(std::memory_order_relaxed) != 0;
}

bool Worker::has_others() const noexcept {
  return some_gave_way() || inbox_taken != nullptr ||
         inbox.load(std::memory_order_relaxed) != nullptr;
}

void thread_main(Worker& worker) {
  set_current_worker(&worker);
  fiber::adopt_native(worker.native);
  worker.exception_globals = fiber::thread_exception_globals();
  fiber::Fiber& first = loop_fiber(worker);
  worker.fiber = &first;
  fiber::switch_to(worker.native, first, worker.exception_globals, nullptr, nullptr);
  set_current_worker(nullptr);  // the runtime has stopped
}

namespace {

// The only worker that may resume a suspended task, or null.
Worker* bound_to(const Task& task) noexcept {
  return static_cast<Worker*>(static_cast<const fiber::Fiber*>(task.fiber)->tied_to);
}

inline void enqueue(Worker& worker, Task& task, const Origin origin,
                    Worker* const tied_to) noexcept {
  Runtime& runtime = *worker.runtime;
  if (tied_to != nullptr && (tied_to->foreign() || !runtime.one_at_a_time)) {
    post(*tied_to, task);
    return;
  }
  // release: who claims it sees what was done before. From here on a second entry may run it.
  if (origin != Origin::resumed) task.state.store(State::ready, std::memory_order_release);
  if (task.group != worker.group || worker.queues == nullptr || !worker.queues->push(task, origin))
      [[unlikely]] {
    if (origin == Origin::forked && runtime.lineage.marks()) lineage::mark(worker, task);
    push_to_group(worker, task, tied_to != nullptr ? tied_to->id : no_worker, origin);
    return;
  }
  // Why no wake-up is lost: parking.hpp, for each member; one that has not joined yet looks for
  // work after it has.
  base::light_fence();
  if (runtime.parking.asleep() != 0) [[unlikely]] wake_neighbour(worker);
}

}  // namespace

void settle(Worker& worker, task::Outcome& outcome) noexcept {
  while (Task* const dead = outcome.dead.pop()) discard(worker, *dead);
  while (Task* const ready = outcome.ready.pop()) {
    enqueue(worker, *ready, ready->fiber != nullptr ? Origin::resumed : Origin::released);
  }
}

void let_go(Worker& worker, task::Waiter& first) noexcept {
  Task* const only = first.next == nullptr && first.notify == nullptr ? first.task : nullptr;
  if (only != nullptr) {
    if (!only->release()) return;
    if (only->state.load(std::memory_order_relaxed) == State::suspended) [[likely]] {
      task::change_state(*only, State::suspended, State::resumable);
      enqueue(worker, *only, Origin::resumed, bound_to(*only));
      return;
    }
  }
  task::Outcome outcome;
  if (only != nullptr) {
    task::make_ready(*only, outcome.ready);
  } else {
    task::event::let_go_all(&first, outcome);
  }
  settle(worker, outcome);
}

void enqueue(Worker& worker, Task& task, const Origin origin) noexcept {
  enqueue(worker, task, origin, task.fiber != nullptr ? bound_to(task) : nullptr);
}

namespace {

// From now on the running task counts as suspended, with one pending count for what it waits for.
Task& begin_wait(Worker& worker, const detail::WaitReason& reason) noexcept {
  Task& task = *worker.task;
  fiber::Fiber& fiber = *worker.fiber;
  fiber.reason = &reason;
  fiber.task = &task;
  task.fiber = &fiber;
  task.pending.store(1, std::memory_order_relaxed);  // published with the waiter
  task::change_state(task, State::running, State::suspended);
  return task;
}

// What `left` would wait for is there already.
[[gnu::noinline]] void resume_at_once(const fiber::Fiber& left) noexcept {
  Task& task = *static_cast<Task*>(left.task);
  task.pending.store(0, std::memory_order_relaxed);
  task::change_state(task, State::suspended, State::resumable);
  enqueue(*current_worker(), task, Origin::resumed);
}

// What a task waits for becomes known only when its worker stands on another stack: so whoever
// fires it finds one count, its own, and needs to tell nobody else.
template <class Wait>
void publish_wait(fiber::Fiber& left, void* const argument) noexcept {
  if (static_cast<Wait*>(argument)->publish()) [[likely]] return;  // the task may run by now
  resume_at_once(left);
}

// A foreign thread blocks: it has no loop.
template <class Wait>
[[gnu::cold, gnu::noinline]] void block(Worker& worker, Task& task, Wait& wait) noexcept {
  if (wait.publish()) {
    worker.parked.store(true, std::memory_order_release);
    worker.semaphore.acquire();
    worker.parked.store(false, std::memory_order_relaxed);
  }
  task.fiber = nullptr;
  worker.recorder.suspensions.add(1);
  task.state.store(State::running, std::memory_order_relaxed);  // from suspended or resumable
}

// Leaves the worker until the task is released. `wait.publish()` makes the wait known; false if
// there is nothing to wait for any more.
template <class Wait>
void suspend(Worker& worker, const detail::WaitReason& reason, Wait& wait) noexcept {
  Task& task = begin_wait(worker, reason);
  const Polling polling = worker.runtime->ring(worker);
  if (worker.foreign()) [[unlikely]] {
    let_another_poll(worker);
    block(worker, task, wait);
    return;
  }
  poll_if_due(worker, polling);
  leave(worker, &publish_wait<Wait>, &wait);
}

struct EventWait : task::Waiter {
  EventWait(Task& waiting, detail::EventWord& its_event) noexcept : event(&its_event) {
    task = &waiting;
  }
  detail::EventWord* event;
  [[nodiscard]] bool publish() noexcept { return task::event::add(*event, *this); }
};

struct ScopeWait {
  task::Scope* scope;
  task::Await what;
  [[nodiscard]] bool publish() noexcept { return !scope->begin_wait(what); }
};

}  // namespace

[[gnu::flatten]] void wait_for(Worker& worker, detail::EventWord& event,
                               const detail::WaitReason& reason) noexcept {
  EventWait wait(*worker.task, event);
  suspend(worker, reason, wait);
}

void wait_for(Worker& worker, task::Scope& scope, const task::Await what,
              const detail::WaitReason& reason) noexcept {
  if (scope.finished_all(what)) {
    [[maybe_unused]] const bool over = scope.begin_wait(what);  // nobody else changes it any more
  } else {
    ScopeWait wait{&scope, what};
    suspend(worker, reason, wait);
  }
  scope.awaiting = task::Await::nothing;
}

bool run_in_place(Worker& worker, Task& other) {
  Task& waiting = *worker.task;
  const Membership& place = *worker.membership;
  if (other.state.load(std::memory_order_acquire) != State::ready || worker.foreign() ||
      other.group != worker.group || !fiber::half_left(*worker.fiber)) {
    return false;
  }
  // Only where its queue gives it up: an entry that stays behind would keep the descriptor.
  if (!(worker.queues != nullptr ? worker.queues->take(other)
                               : place.group->policy->take(place.index, other))) {
    return false;
  }
  // The entry is ours and the caller holds a future: with two references there is nobody else.
  if (other.references.load(std::memory_order_acquire) == 2) {
    other.state.store(State::running, std::memory_order_relaxed);
  } else if (!task::claim({&other, false})) {
    drop_reference(worker, other);
    return false;
  }
  void* const tied_before = worker.fiber->tied_to;
  if (other.tied) worker.fiber->tied_to = &worker;
  run_body(worker, other);
  Worker& now = *current_worker();
  now.fiber->tied_to = tied_before;
  now.task = &waiting;
  if (lineage::notes_end(now, other)) [[unlikely]] (void)lineage::ends(now, other);
  if (task::complete_alone(other, waiting)) return true;
  task::Outcome outcome;
  task::Tally tally;
  end_body(other, tally, outcome);
  task::flush(tally, outcome);
  settle(now, outcome);
  return true;
}

void give_way(Worker& worker, std::uint64_t tasks_min) noexcept {
  if (worker.foreign() || worker.callbacks != 0) return;
  const bool own = worker.queues != nullptr && worker.queues->size() != 0;  // the likely answer
  if (!own && !worker.has_others() && !worker.some_ready()) return;
  static constexpr detail::WaitReason reason{.what = "yield"};
  (void)begin_wait(worker, reason);
  leave(worker, &after_give_way, &tasks_min);
}

void discard(Worker& worker, detail::Completion& completion) noexcept {
  if (!task::is_task(completion)) {
    task::Outcome outcome;
    task::destroy_other(completion, outcome);
    settle(worker, outcome);
    return;
  }
  auto& task = static_cast<Task&>(completion);
  if (task.ops != nullptr && task.ops->destroy != nullptr && !task.error &&
      task.state.load(std::memory_order_relaxed) == State::complete) {
    task.ops->destroy(task.closure());
  }
  if (task.error) [[unlikely]] task.error = nullptr;
  if (task.accesses != nullptr) task::destroy_accesses(task, worker.small);
  if (task.family != nullptr) [[unlikely]] destroy_family(worker, *task.family);
  recycle(worker, task);
}

void drop_reference(Worker& worker, detail::Completion& completion) noexcept {
  if (task::drop(completion)) discard(worker, completion);
}

}  // namespace imbrex::sched
