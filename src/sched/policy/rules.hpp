// SPDX-License-Identifier: BSD-3-Clause
// The rules of a worker that stand beside its policy: where it looks for a task, when tasks that
// gave way have a turn, when a creator lets others go first. Used by the workers of sched/run and
// by the simulator. Knows no thread and no clock.
//
// Thread safety: none; the caller orders accesses to what it passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>

#include "sched/policy/ordered_queue.hpp"
#include "sched/policy/policy.hpp"
#include "task/descriptor.hpp"

namespace imbrex::sched {

// A task that gave way: it runs again when nothing else is ready, or `ticket` tasks have begun.
struct Behind {
  Task* task;
  std::uint64_t ticket;
};

namespace rules {

// ---- tasks that gave way ---------------------------------------------------------------------

// How many tasks go before one that gives way while `ready` are ready and asks for `tasks_min`.
[[nodiscard]] constexpr std::uint64_t tasks_before(const std::uint64_t ready,
                                                   const std::uint64_t tasks_min) noexcept {
  return std::max(ready, tasks_min);
}

// Keeps `behind` in the order of tickets, so that a task that lets many go first delays no task
// whose ticket is smaller.
inline void insert(std::deque<Behind>& behind, const Behind& entry) {
  auto place = behind.end();
  while (place != behind.begin() && std::prev(place)->ticket > entry.ticket) --place;
  behind.insert(place, entry);
}

// The first of `behind`, taken out, or null. `always`: nothing else is ready; else the first goes
// only once its ticket is up.
[[nodiscard]] inline Task* take_due(std::deque<Behind>& behind, const bool always,
                                    const std::uint64_t begun) {
  if (behind.empty() || (!always && behind.front().ticket > begun)) return nullptr;
  Task* const task = behind.front().task;
  behind.pop_front();
  return task;
}

// When tasks outside of the policy (the inbox, and those that gave way) have a turn: after so many
// picks that go by the policy.
class TurnOfOthers {
 public:
  static constexpr std::uint32_t picks_between = 16;
  // Counts a pick. True if this one is the others'.
  [[nodiscard]] bool is_due() noexcept { return picks_-- == 0; }
  void begin() noexcept { picks_ = picks_between; }
  void next_pick() noexcept { picks_ = 0; }
  void after_one_pick() noexcept { picks_ = 1; }

 private:
  std::uint32_t picks_ = 0;
};

// ---- where the next task comes from ----------------------------------------------------------

enum class Search : std::uint8_t {
  own,   // what is queued for this worker
  all,   // ... and what others have queued for themselves, but for what they will run at once
  eager  // ... and that
};

// The order of places: the queues of the policy for this worker, then `around`, the groups that the
// worker belongs to besides, then `steal`, the queues of others.
template <class Around, class Steal>
[[nodiscard]] Entry find_in_order(Policy& policy, const int worker, Around around, Steal steal) {
  if (const Entry entry = policy.pop(worker)) return entry;
  if (const Entry entry = around()) return entry;
  return steal();
}

// Of a policy with one queue for all: whether its first entry is for `worker`, which pushed last,
// or for anyone.
[[nodiscard]] inline bool is_own(const OrderedQueue& queue, const int worker) noexcept {
  const int pusher = queue.pusher();
  return pusher == worker || pusher == no_worker;
}
// The entry of another worker that is alone in the queue is left to that worker, unless `eager`.
[[nodiscard]] inline bool may_take(const OrderedQueue& queue, const bool eager) noexcept {
  return queue.size() >= (eager ? 1 : 2);
}

// The one task of `ready`, taken out, which runs next without a queue, or null. It must be new, and
// `nothing_else(task)` must say that the worker has nothing else to run.
template <class NothingElse>
[[nodiscard]] Task* take_only_one(task::ReadyList& ready, NothingElse nothing_else) {
  Task* const task = ready.head;
  if (task == nullptr || task->next_ready != nullptr || task->fiber != nullptr ||
      !nothing_else(*task)) {
    return nullptr;
  }
  ready.head = nullptr;
  // It has no entry in a queue, so nobody else claims it.
  task::change_state(*task, task::State::created, task::State::running);
  return task;
}

// ---- a creator ahead of its tasks ------------------------------------------------------------

// A creator looks each time that it has created a window of tasks since `unchecked` was 0.
struct Ahead {
  bool gives_way;             // it lets window / 2 ready tasks go first; it never waits for them
  std::uint32_t unchecked;    // created since this look, as far as the next look is concerned
};
// `live`: how many of its tasks are not complete.
[[nodiscard]] constexpr Ahead look_ahead(const std::uint32_t live,
                                         const std::uint32_t window) noexcept {
  if (live < window) return {false, live};
  return {true, window / 2};
}

}  // namespace rules
}  // namespace imbrex::sched
