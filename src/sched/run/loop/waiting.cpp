// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/loop/waiting.hpp"

#include <algorithm>

#include "sched/run/dead.hpp"
#include "sched/run/idle.hpp"
#include "sched/run/loop/loop.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/polling.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/task_races.hpp"
#include "task/access/depend.hpp"
#include "task/event_word.hpp"
#include "task/access/in_place.hpp"

namespace imbrex::sched {

using task::State;

namespace {

// The running task leaves its stack for the stack of `next`, if that is a suspended task.
[[gnu::cold, gnu::noinline]] void observe_switch(Worker& worker, const Task* const next) {
  const auto* const reason = static_cast<const detail::WaitReason*>(worker.fiber->reason);
  notes::suspension(worker, *worker.task, *reason);
  if (next != nullptr && next->fiber != nullptr) notes::resumption(worker, *next);
}

// Leaves the running task's stack for the stack of the next task, if that is a suspended one, or
// else for a loop; returns when the task is resumed.
void leave(Worker& worker, const fiber::Arrival arrival, void* const argument) noexcept {
  fiber::Fiber& from = *worker.fiber;
  flush_tally(worker);
  // If only one worker runs at a time, a search would pass the turn on too early.
  const bool search = worker.queues != nullptr || !worker.runtime->one_at_a_time;
  Task* const next = search ? find_claimed(worker, false) : nullptr;
  if (next != nullptr) let_another_poll(worker);
  if (worker.recorder.notes_switches()) [[unlikely]] observe_switch(worker, next);
  if (next != nullptr && next->fiber != nullptr) {
    fiber::switch_to(from, wake_up(worker, *next), worker.exception_globals, arrival, argument);
    return;
  }
  worker.found = next;  // the loop starts it
  worker.fiber = &loop_fiber(worker);
  worker.task = nullptr;
  fiber::switch_to(from, *worker.fiber, worker.exception_globals, arrival, argument);
}

// The running task counts as suspended from now on, with one pending count for its event.
Task& begin_wait(Worker& worker, const detail::WaitReason& reason) noexcept {
  Task& task = *worker.task;
  fiber::Fiber& fiber = *worker.fiber;
  fiber.reason = &reason;
  fiber.task = &task;
  fiber.waits.store(fiber.waits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  task.fiber = &fiber;
  task.pending.store(1, std::memory_order_relaxed);  // published with the waiter
  task::change_state(task, State::running, State::suspended);
  return task;
}

// The event has fired already: the task of `left` is queued to resume at once.
[[gnu::noinline]] void resume_at_once(const fiber::Fiber& left) noexcept {
  Task& task = *static_cast<Task*>(left.task);
  task.pending.store(0, std::memory_order_relaxed);
  task::change_state(task, State::suspended, State::resumable);
  enqueue(*current_worker(), task, Origin::resumed);
}

// A wait is published only when the worker runs on another stack. The thread that ends the wait
// then finds one pending count, its own, and need not tell any other thread.
template <class Wait>
void publish_wait(fiber::Fiber& left, void* const argument) noexcept {
  if (static_cast<Wait*>(argument)->publish()) [[likely]] return;  // the task may run by now
  resume_at_once(left);
}

// A foreign thread blocks: it has no loop.
template <class Wait>
[[gnu::cold, gnu::noinline]] void block(Worker& worker, Task& task, Wait& wait) noexcept {
  if (wait.publish()) poll_until_rung(worker);
  task.fiber = nullptr;
  worker.fiber->task = nullptr;
  worker.recorder.suspensions.add(1);
  task.state.store(State::running, std::memory_order_relaxed);  // from suspended or resumable
}

// Leaves the worker until the task is released. `wait.publish()` publishes the wait; false if the
// event has fired already.
template <class Wait>
void suspend(Worker& worker, const detail::WaitReason& reason, Wait& wait) noexcept {
  Task& task = begin_wait(worker, reason);
  const Polling polling = worker.runtime->ring(worker);
  if (worker.foreign()) [[unlikely]] {
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
    // no other thread changes it any more
    [[maybe_unused]] const bool over = scope.begin_wait(what);
  } else {
    ScopeWait wait{&scope, what};
    suspend(worker, reason, wait);
  }
  scope.awaiting = task::Await::nothing;
}

void await_scopes(task::Family& family, const task::Await what,
                  const detail::WaitReason& reason) noexcept {
  for (task::Scope* scope = family.current; scope != nullptr; scope = scope->outer) {
    wait_for(*current_worker(), *scope, what, reason);
    task_races::waited(*scope, what);
    if (trace::happens_before::is_kept()) [[unlikely]] notes::follows(*scope, what);
  }
}

void await_descendants(task::Family& family, const detail::WaitReason& reason) noexcept {
  await_scopes(family, task::Await::descendants, reason);
  if (family.table == nullptr) return;
  task::Outcome outcome;
  family.table->clear(outcome);
  destroy_all(outcome);
}

namespace {

// The body of `other` has ended on the stack of `below`, which runs again.
[[gnu::always_inline]] inline void end_in_place(Worker& worker, Task& other,
                                                Task& below) noexcept {
  worker.task = &below;
  if (notes::notes_end(worker, other)) [[unlikely]] (void)notes::ends(worker, other);
  if (task::complete_alone(other, below)) return;
  other.in_place.store(detail::InPlace::no, std::memory_order_release);
  task::Outcome outcome;
  task::Tally tally;
  end_body(worker, other, tally, outcome);
  task::flush(tally, outcome);
  act_on(worker, outcome);
}

}  // namespace

bool run_in_place(Worker& worker, Task& other) {
  Task& waiting = *worker.task;
  const Membership& place = *worker.membership;
  // A task that is tied to this worker goes first. A task of another group could resume where the
  // waiting task must not, and take it along.
  if (other.state.load(std::memory_order_acquire) != State::ready ||
      worker.inbox.load(std::memory_order_relaxed) != nullptr || other.group != waiting.group ||
      !fiber::half_left(*worker.fiber) || fiber::in_exception(worker.exception_globals)) {
    return false;
  }
  // The task's queue must give it up: a left entry would keep the descriptor alive.
  if (!(worker.queues != nullptr ? worker.queues->take(other)
                               : place.group->policy->take(place.index, other))) {
    return false;
  }
  // Pairs with share(): a thread that sees that the task runs also sees how.
  other.in_place.store(detail::InPlace::runs, std::memory_order_relaxed);
  // This function has the entry and the caller holds a future: two references mean that there are
  // no others.
  if (other.references.load(std::memory_order_acquire) == 2) {
    other.state.store(State::running, std::memory_order_release);
  } else if (!task::claim({&other, false})) {
    other.in_place.store(detail::InPlace::no, std::memory_order_relaxed);
    drop_reference(worker, other);
    return false;
  }
  void* const tied_before = worker.fiber->tied_to;
  if (other.tied) worker.fiber->tied_to = &worker;
  run_body(worker, other);
  Worker& now = *current_worker();
  now.fiber->tied_to = tied_before;
  end_in_place(now, other, waiting);
  return true;
}

void run_where_spawned(Worker& worker, Task& task) noexcept {
  Task& parent = *worker.task;
  // no entry: no other worker claims it
  task.state.store(State::running, std::memory_order_relaxed);
  run_body(worker, task);
  end_in_place(worker, task, parent);
}

namespace {

// Runs on the new stack, right after a task has left its own: the task may be resumed from now on.
void after_give_way(fiber::Fiber& left, void* const argument) noexcept {
  Task& task = *static_cast<Task*>(left.task);
  Worker& worker = *current_worker();
  // read first: the stack is left
  const std::uint64_t half_window = *static_cast<const std::uint64_t*>(argument);
  const bool tied = left.tied_to != nullptr;
  const detail::Group& group = *worker.membership->group;
  const auto ready = static_cast<std::uint64_t>(group.policy->size());
  const auto workers = static_cast<std::uint64_t>(group.size);
  if (tied) worker.turn_of_others.expect(rules::tasks_kept(half_window, workers), workers);
  put_behind(worker, task, tied, rules::tasks_before(ready, half_window, workers));
}

// Under a policy that takes all, no task is preferred to due tasks that gave way: two tasks that
// let one go first would otherwise pass the worker to each other for ever.
void after_letting_one_go(fiber::Fiber& left, void*) noexcept {
  Task& task = *static_cast<Task*>(left.task);
  Worker& worker = *current_worker();
  std::uint64_t before = 1;
  if (worker.runtime->one_at_a_time) {
    before += static_cast<std::uint64_t>(worker.membership->group->policy->size());
  }
  put_behind(worker, task, left.tied_to != nullptr, before);
}

bool others_are_ready(const Worker& worker) noexcept {
  const bool own = worker.queues != nullptr && worker.queues->size() != 0;  // the likely answer
  return own || worker.has_others() || worker.some_ready();
}

}  // namespace

void give_way(Worker& worker, std::uint64_t half_window) noexcept {
  if (worker.foreign() || worker.callbacks != 0 || !others_are_ready(worker)) return;
  static constexpr detail::WaitReason reason{.kind = detail::WaitKind::turn};
  (void)begin_wait(worker, reason);
  leave(worker, &after_give_way, &half_window);
}

bool let_one_go_first(Worker& worker, const detail::WaitReason& reason) noexcept {
  if (worker.foreign() || worker.callbacks != 0 || !others_are_ready(worker)) return false;
  // One pick of the worker goes by the policy; the next pick checks the tasks outside of it.
  worker.turn_of_others.after_one_pick();
  (void)begin_wait(worker, reason);
  leave(worker, &after_letting_one_go, nullptr);
  return true;
}

}  // namespace imbrex::sched
