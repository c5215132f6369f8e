// SPDX-License-Identifier: BSD-3-Clause
// Ready tasks: where each goes, and where a worker finds the next. A tied task goes to the inbox of
// its worker, a task that gave way waits behind others, and all other tasks go through the policy
// of their group. Used by the loop, by waits, and by all code that makes tasks ready.
#pragma once

#include "sched/run/dead.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// Queues the tasks that became ready, then reuses the dead ones. Never runs code of the program: a
// task destroys results (dead.hpp).
void act_on(Worker& worker, task::Outcome& outcome) noexcept;
// Counts the tasks of the tally. Call it before the worker turns to anything but a task of the same
// scope, and before it takes a task of another worker: a creator then knows how far it is ahead,
// however long other workers find tasks of it.
inline void flush_tally(Worker& worker) noexcept;
void enqueue(Worker& worker, Task& task, Origin origin) noexcept;
// Releases the waiters, linked from `first` on, of a fired event.
void let_go(Worker& worker, task::Waiter& first) noexcept;
// Fires and releases the waiters; no effect if the event has fired before.
void fire(Worker& worker, detail::EventWord& event) noexcept;

// A task that gave way goes behind `before` other tasks.
void put_behind(Worker& worker, Task& task, bool tied, std::uint64_t before) noexcept;

// The next task for `worker`, claimed; null if there is none. Without `eager`: not a task that its
// owner will run at once.
[[nodiscard]] inline Task* find_claimed(Worker& worker, bool eager) noexcept;

// Wakes a sleeping member of the worker's group for a task that the worker has queued there, unless
// the worker takes the task itself.
void wake_neighbour(Worker& worker) noexcept;

// Whether a spare worker must give its processor back before it begins another task.
[[nodiscard]] inline bool must_leave(const Worker& worker) noexcept {
  return worker.seat.spare && !worker.runtime->lending->may_run(worker.seat);
}

// Whether no task is ready and no worker runs one, except `self`, which may be null.
[[nodiscard]] bool rests(const RuntimeState& runtime, const Worker* self) noexcept;

// ---- bodies ----------------------------------------------------------------------------------

inline void flush_tally(Worker& worker) noexcept {
  if (worker.tally.scope == nullptr) return;
  task::Outcome outcome;
  task::flush(worker.tally, outcome);
  act_on(worker, outcome);
}

[[nodiscard, gnu::noinline]] Entry find_elsewhere(Worker& worker, bool eager) noexcept;
// Takes a task from the inbox, or one that gave way.
[[nodiscard, gnu::noinline]] Entry take_others(Worker& worker) noexcept;
// Takes a task that gave way. `always`: nothing else is ready; otherwise only a task whose ticket
// is up.
[[nodiscard, gnu::noinline]] Task* take_behind(Worker& worker, bool always) noexcept;

// The next task for `worker`, not yet claimed.
[[nodiscard]] inline Entry find(Worker& worker, const bool eager) noexcept {
  // Tasks that gave way get their turn even if new tasks never cease.
  if (worker.inbox.load(std::memory_order_relaxed) != nullptr || worker.turn_of_others.is_due())
      [[unlikely]] {
    if (const Entry entry = take_others(worker)) return entry;
  }
  if (worker.queues != nullptr) [[likely]] {
    if (const Entry entry = worker.queues->pop()) [[likely]] return entry;
  }
  return find_elsewhere(worker, eager);
}

inline Task* find_claimed(Worker& worker, const bool eager) noexcept {
  for (;;) {
    Entry entry = find(worker, eager);
    if (!entry && worker.some_gave_way()) {
      if (worker.only_queue != nullptr) worker.steal_again_at = 0;  // behind all ready tasks
      if (worker.runtime->workers.size() > 1) entry = find(worker, true);
      if (!entry) entry = {take_behind(worker, true), true};
    }
    if (!entry) return nullptr;
    if (task::claim(entry)) return entry.task;
    drop_reference(worker, *entry.task);  // a stale entry
  }
}

}  // namespace imbrex::sched
