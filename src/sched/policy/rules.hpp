// SPDX-License-Identifier: BSD-3-Clause
// The rules of a worker beside its policy: where it looks for a task, when tasks that gave way have
// a turn, when a creator lets other tasks go first. Used by the workers of sched/run and by the
// simulator. Knows no thread and no clock.
//
// Thread safety: none; the caller orders accesses to the arguments.
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

// The number of ready tasks that a creator leaves for `workers` workers when it goes on. It can
// only go on when its own worker has ended a task, and until then the others need tasks.
inline constexpr std::uint64_t kept_for_each = 32;
[[nodiscard]] constexpr std::uint64_t tasks_kept(const std::uint64_t half_window,
                                                 const std::uint64_t workers) noexcept {
  return std::min(half_window, kept_for_each * (workers - 1));
}

// The number of tasks that go before a task that gives way, while `ready` are ready. A task that
// yields lets all of them go: its `half_window` is 0. A creator keeps some.
[[nodiscard]] constexpr std::uint64_t tasks_before(const std::uint64_t ready,
                                                   const std::uint64_t half_window,
                                                   const std::uint64_t workers) noexcept {
  return std::max(ready, half_window) - tasks_kept(half_window, workers);
}

// Keeps `behind` in the order of tickets: a task that lets many tasks go first delays no task with
// a smaller ticket.
inline void insert(std::deque<Behind>& behind, const Behind& entry) {
  auto place = behind.end();
  while (place != behind.begin() && std::prev(place)->ticket > entry.ticket) --place;
  behind.insert(place, entry);
}

// Takes out the first of `behind`, or returns null. `always`: nothing else is ready; otherwise the
// first goes only once its ticket is up.
[[nodiscard]] inline Task* take_due(std::deque<Behind>& behind, const bool always,
                                    const std::uint64_t begun) {
  if (behind.empty() || (!always && behind.front().ticket > begun)) return nullptr;
  Task* const task = behind.front().task;
  behind.pop_front();
  return task;
}

// The turn of tasks outside of the policy (the inbox, and tasks that gave way): after a number of
// picks by the policy.
class TurnOfOthers {
 public:
  static constexpr std::uint32_t picks_between = 16;
  // Counts a pick. True if this pick is for the tasks outside of the policy.
  [[nodiscard]] bool is_due() noexcept { return picks_-- == 0; }
  void begin() noexcept { picks_ = between_; }
  // A creator that stays with this worker gives way and keeps `kept` tasks for `workers` workers.
  // From now on the turn comes before they have begun half of these.
  void expect(const std::uint64_t kept, const std::uint64_t workers) noexcept {
    if (kept == 0) return;
    picks_ = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(picks_between, kept / (2 * workers)));
    between_ = std::max<std::uint32_t>(picks_, 1);
  }
  void next_pick() noexcept { picks_ = 0; }
  void after_one_pick() noexcept { picks_ = 1; }

 private:
  std::uint32_t picks_ = 0;
  std::uint32_t between_ = picks_between;
};

// ---- where the next task comes from ----------------------------------------------------------

enum class Search : std::uint8_t {
  own,   // tasks that are queued for this worker
  all,   // also tasks of other workers, except those that their owners will run at once
  eager  // also tasks that their owners will run at once
};

// The order of places: the policy's queues for this worker, then `around`, the worker's other
// groups, then `steal`, the queues of other workers.
template <class Around, class Steal>
[[nodiscard]] Entry find_in_order(Policy& policy, const int worker, Around around, Steal steal) {
  if (const Entry entry = policy.pop(worker)) return entry;
  if (const Entry entry = around()) return entry;
  return steal();
}

// For a policy with one queue for all workers: whether its first entry is for `worker`, which
// pushed last, or for any worker.
[[nodiscard]] inline bool is_own(const OrderedQueue& queue, const int worker) noexcept {
  const int pusher = queue.pusher();
  return pusher == worker || pusher == no_worker;
}
// The entry of another worker that is alone in the queue is left to that worker, unless `eager`.
[[nodiscard]] inline bool may_take(const OrderedQueue& queue, const bool eager) noexcept {
  return queue.size() >= (eager ? 1 : 2);
}

// Takes out the one task of `ready`, which runs next without a queue, or returns null. It must be
// new, and `nothing_else(task)` must say that the worker has nothing else to run.
template <class NothingElse>
[[nodiscard]] Task* take_only_one(task::ReadyList& ready, NothingElse nothing_else) {
  Task* const task = ready.head;
  if (task == nullptr || task->next_ready != nullptr || task->fiber != nullptr ||
      !nothing_else(*task)) {
    return nullptr;
  }
  ready.head = nullptr;
  // The task has no entry in a queue, so no other worker claims it.
  task::change_state(*task, task::State::created, task::State::running);
  return task;
}

// ---- a creator ahead of its tasks ------------------------------------------------------------

// A creator checks each time that it has created a window of tasks since `unchecked` was 0.
struct Ahead {
  bool gives_way;             // tasks_before() go first; the creator never waits for them
  std::uint32_t unchecked;    // tasks created since this check, as the next check counts them
  std::uint32_t half_window;
};
// `live`: the number of its tasks that are not complete. A window has at least four tasks for each
// of several workers. So when a creator of independent tasks gives way, three are ready for each
// worker, and tasks_kept() are two for each: every other worker finds a task whenever one ends.
[[nodiscard]] constexpr Ahead look_ahead(const std::uint32_t live, const std::uint32_t window,
                                         const std::uint32_t workers) noexcept {
  const std::uint32_t whole = workers == 1 ? window : std::max(window, 4 * workers);
  const bool gives_way = live >= whole;
  const std::uint32_t to_create = whole - (gives_way ? whole / 2 : live);
  return {gives_way, window - std::min(window, to_create), whole / 2};
}

}  // namespace rules
}  // namespace imbrex::sched
