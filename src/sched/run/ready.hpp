// SPDX-License-Identifier: BSD-3-Clause
// Ready tasks: where each goes, and where a worker finds the next. A tied task goes to the inbox of
// its worker, one that gave way waits behind others, and all the rest go through the policy of
// their group. Used by the loop, by waits, and by whatever makes tasks ready.
#pragma once

#include "sched/run/dead.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// Queues what became ready; then what is dead is used again. Never runs code of the program's:
// results are destroyed by a task (dead.hpp).
void act_on(Worker& worker, task::Outcome& outcome) noexcept;
void enqueue(Worker& worker, Task& task, Origin origin) noexcept;
// Lets go the waiters, linked from `first` on, of an event that has fired.
void let_go(Worker& worker, task::Waiter& first) noexcept;
// Fires, and lets go. Nothing, if it has fired before.
void fire(Worker& worker, detail::EventWord& event) noexcept;

// A task that gave way goes behind `before` others.
void put_behind(Worker& worker, Task& task, bool tied, std::uint64_t before) noexcept;

// The next task for `worker`, claimed; null if there was nothing. Not `eager`: what its owner will
// run at once is left alone.
[[nodiscard]] inline Task* find_claimed(Worker& worker, bool eager) noexcept;

// Wakes a sleeping member of the worker's group for a task that it has queued there, unless it
// takes that itself.
void wake_neighbour(Worker& worker) noexcept;

// Whether no task is ready and no worker runs one, but for `self`, which may be null.
[[nodiscard]] bool rests(const RuntimeState& runtime, const Worker* self) noexcept;

// ---- bodies ----------------------------------------------------------------------------------

[[nodiscard, gnu::noinline]] Entry find_elsewhere(Worker& worker, bool eager) noexcept;
// Takes a task from the inbox, or one that gave way.
[[nodiscard, gnu::noinline]] Entry take_others(Worker& worker) noexcept;
// Takes a task that gave way. `always`: nothing else is ready; else only one whose ticket is up.
[[nodiscard, gnu::noinline]] Task* take_behind(Worker& worker, bool always) noexcept;

// The next task for `worker`, not yet claimed.
[[nodiscard]] inline Entry find(Worker& worker, const bool eager) noexcept {
  // Those that gave way get their turn even if new tasks never cease.
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
      if (worker.only_queue != nullptr) worker.steal_again_at = 0;  // behind all that is ready
      if (worker.runtime->workers.size() > 1) entry = find(worker, true);
      if (!entry) entry = {take_behind(worker, true), true};
    }
    if (!entry) return nullptr;
    if (task::claim(entry)) return entry.task;
    drop_reference(worker, *entry.task);  // a stale entry
  }
}

}  // namespace imbrex::sched
