// SPDX-License-Identifier: BSD-3-Clause
// Work stealing, in two orders. The code is here, not only behind make_policy(), so that a worker's
// loop can inline the frequent operations.
//
// steal: each worker runs its newest task first and steals the oldest of other workers. default:
// forked tasks run in that order, so that recursion runs depth first in little memory. Tasks with
// dependencies run oldest first, in the order of their release, because newest-first order lets the
// ranks of a graph with messages wait for each other. A task that was created before the first one
// in the queue goes before it (docs/design/default-policy.md). Tasks that have begun go before all
// others.
//
// Both honour priorities other than 0: above 0 before, below 0 after all other tasks. A task that a
// thread outside of the workers made ready is in no worker's queue: a resumed one goes before all
// queued tasks; a new one has a turn after a bounded number of others.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/guarded.hpp"
#include "base/ring.hpp"
#include "base/spin_lock.hpp"
#include "base/zeros.hpp"
#include "sched/policy/biased_lock.hpp"
#include "sched/policy/ordered_queue.hpp"
#include "sched/policy/policy.hpp"

namespace imbrex::sched {

// Tasks that threads outside of the workers made ready, oldest first.
class ForeignQueue {
 public:
  void push(const Entry& entry);
  [[nodiscard]] Entry pop_resumed() noexcept { return pop(resumed_); }
  [[nodiscard]] Entry pop_new() noexcept { return pop(new_); }
  [[nodiscard]] bool has_resumed() const noexcept {
    return resumed_.size.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] bool has_new() const noexcept {
    return new_.size.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] std::size_t extract(const void* kind, std::span<Task*> to);
  [[nodiscard]] std::int64_t size() const noexcept {
    return resumed_.size.load(std::memory_order_acquire) +
           new_.size.load(std::memory_order_acquire);
  }

 private:
  struct Fifo {
    base::SpinLock lock;
    std::deque<Task*> tasks IMBREX_GUARDED_BY(lock);
    std::atomic<std::int64_t> size{0};  // written under the lock
  };
  [[nodiscard]] Entry pop(Fifo& fifo) noexcept;

  Fifo resumed_, new_;
};

// The queues of one worker, which owns the lock that guards them. Thread safety: the owner calls
// push, pop, take; any thread calls size.
struct alignas(base::cache_line_bytes) LocalQueues {
  BiasedLock lock;
  base::Ring<Task> resumed IMBREX_GUARDED_BY(lock);  // oldest first
  base::Ring<Task> newest_first IMBREX_GUARDED_BY(lock);
  base::Ring<Task> oldest_first IMBREX_GUARDED_BY(lock);
  std::atomic<std::uint64_t>* marks = nullptr;  // where `mark` says whether the rings may have
                                                // entries
  std::uint64_t mark = 0;
  bool graph_order = false;                // constant from the policy's start on, as are the next
                                           // fields
  std::int32_t patience = 1;               // number of picks that a task of `foreign` may have to
                                           // wait
  // The number of tasks that may go before these: urgent and foreign ones. A worker that pushed
  // none sees 0.
  const std::atomic<std::int64_t>* elsewhere = nullptr;
  const ForeignQueue* foreign = nullptr;
  std::int32_t waited = 0;                 // owner: picks since a foreign task began here, of those
                                           // made while some waited

  // False if the priority of the task belongs to another queue.
  [[nodiscard]] bool push(Task& task, const Origin origin) {
    if (task.priority.load(std::memory_order_relaxed) != 0) [[unlikely]] return false;
    base::Ring<Task>* ring = &newest_first;
    if (origin == Origin::resumed) ring = &resumed;
    if (graph_order && origin == Origin::released) ring = &oldest_first;
    lock.enter();
    if (ring != &oldest_first || !push_early(task)) [[likely]] ring->push_back(&task);
    lock.leave();
    return true;
  }
  // A released task that was created before the first one goes to the front. False for other tasks.
  [[nodiscard]] bool push_early(Task& task) IMBREX_REQUIRES(lock) {
    const Task* const first = oldest_first.front();
    if (first == nullptr || first->id < task.id) [[likely]] return false;
    oldest_first.push_front(&task);
    return true;
  }

  // Returns nothing if a task elsewhere may go first.
  [[nodiscard]] Entry pop() noexcept {
    return elsewhere->load(std::memory_order_acquire) == 0 ? pop_own() : Entry{};
  }
  // Whether a new foreign task has the turn. Counts the owner's picks; the code that begins such a
  // task sets `waited` to 0.
  [[nodiscard]] bool new_foreign_is_due() noexcept {
    return foreign->has_new() && ++waited >= patience;
  }
  [[nodiscard, gnu::cold, gnu::noinline]] bool foreign_is_due() noexcept {
    return foreign->has_resumed() || new_foreign_is_due();
  }
  // The newest forked task, so depth first; but the children of one task, forked or released, go in
  // their order.
  [[nodiscard]] Task* pop_new() noexcept IMBREX_REQUIRES(lock) {
    const Task* const newest = newest_first.back();
    if (newest == nullptr) return pop_released();
    const Task* const oldest = newest_first.front();
    if (!graph_order || oldest->parent != newest->parent) return newest_first.pop_back();
    const Task* const released = oldest_first.front();
    const bool before = released != nullptr && released->parent == oldest->parent &&
                        released->id < oldest->id;
    return before ? pop_released() : newest_first.pop_front();
  }
  // The tasks of a graph were created long ago: the next one is fetched while this one runs.
  [[nodiscard]] Task* pop_released() noexcept IMBREX_REQUIRES(lock) {
    Task* const task = oldest_first.pop_front();
    __builtin_prefetch(oldest_first.front(), 1);
    return task;
  }
  [[nodiscard]] Entry pop_own() noexcept {
    lock.enter();
    Entry entry{resumed.pop_front(), true};
    if (!entry) entry = {pop_new(), false};
    lock.leave();
    return entry;
  }

  // True if `task` was the newest and is now the caller's; false if a foreign task has the turn.
  [[nodiscard]] bool take(const Task& task) noexcept {
    if (elsewhere->load(std::memory_order_relaxed) != 0 && foreign_is_due()) [[unlikely]] {
      return false;
    }
    bool taken = true;
    lock.enter();
    if (newest_first.back() == &task) {
      (void)newest_first.pop_back();
    } else if (oldest_first.back() == &task) {
      (void)oldest_first.pop_back();
    } else {
      taken = false;
    }
    lock.leave();
    return taken;
  }

  // Policy::extract(); takes the oldest tasks, as a thief would.
  [[nodiscard]] std::size_t extract(const void* const kind,
                                    const std::span<Task*> to) IMBREX_REQUIRES(lock) {
    std::size_t count = 0;
    for (base::Ring<Task>* const ring : {&newest_first, &oldest_first}) {
      (void)ring->extract(extraction_look, to.size() - count,
                          [kind](const Task& task) { return is_of(task, kind); },
                          [&](Task* const task) { to[count++] = task; });
    }
    return count;
  }

  // Sizes are read without the lock: a moment's view.
  [[nodiscard]] bool has_newest(const std::int64_t count) const noexcept IMBREX_LOCKS_NOT_SEEN {
    return newest_first.has(count);
  }
  [[nodiscard]] std::int64_t size() const noexcept IMBREX_LOCKS_NOT_SEEN {
    return resumed.size() + newest_first.size() + oldest_first.size();
  }
  [[nodiscard]] bool has_ring_of(const std::int64_t least) const noexcept IMBREX_LOCKS_NOT_SEEN {
    return resumed.size() >= least || newest_first.size() >= least || oldest_first.size() >= least;
  }
  // Only the owner opens and closes a ring, so it knows without the lock.
  [[nodiscard]] bool is_open() const noexcept IMBREX_LOCKS_NOT_SEEN {
    return resumed.is_open() || newest_first.is_open() || oldest_first.is_open();
  }
  // The owner is about to sleep: no thief needs to look here until the owner pushes again.
  void close() noexcept {
    if (!is_open()) return;
    lock.enter();
    const bool is_empty = size() == 0;
    if (is_empty) {
      marks->fetch_and(~mark, std::memory_order_relaxed);
      for (base::Ring<Task>* const ring : {&resumed, &newest_first, &oldest_first}) ring->close();
    }
    lock.leave();
  }
  [[nodiscard]] bool empty() const noexcept IMBREX_LOCKS_NOT_SEEN {
    return resumed.empty() && newest_first.empty() && oldest_first.empty() &&
           elsewhere->load(std::memory_order_acquire) == 0;
  }
};

class Stealing final : public Policy {
 public:
  Stealing(const PolicySetup& setup, bool graph_order);

  void push(Task& task, Place place, Origin origin) override;
  Entry pop(int worker) override;
  Entry steal(int worker, bool eager) override;
  Entry steal_at(int worker, bool eager, int distance, bool& busy) override;
  std::uint64_t far_steals() const noexcept override {
    return far_steals_.load(std::memory_order_relaxed);
  }
  bool take(int worker, Task& task) override { return queues_[worker].take(task); }
  void raise(Task& task, int priority) override;
  std::size_t extract(int worker, const void* kind, std::span<Task*> to) override;
  std::int64_t size() const override;
  bool empty(int worker) const override { return queues_[worker].empty(); }

  LocalQueues* local_queues(const int worker) override { return &queues_[worker]; }
  int urgency_of(const int priority) const noexcept override {
    return (priority > 0 ? 1 : 0) - (priority < 0 ? 1 : 0);
  }

 private:
  [[nodiscard]] Entry steal_from(LocalQueues& victim, LocalQueues& own, std::int64_t least);

  void push_urgent(Task& task, const OrderedQueue::Key& key, bool resumed);
  // Takes an entry of urgent_ or foreign_ that goes before the queues of `own`.
  [[nodiscard]] Entry pop_elsewhere(LocalQueues& own) noexcept;
  // Calls visit(queues) until it returns true, for queues that may have entries: in the order of
  // `nearest`, or, without it, of all workers after `self`, and then those before. Returns whether
  // a call has returned true.
  template <class Visit>
  bool visit_marked(std::span<const int> nearest, Visit visit);
  template <class Visit>
  bool visit_marked_behind(int self, Visit visit);

  // Returns `entry`, which was popped elsewhere, and takes it off the count in elsewhere_.
  [[nodiscard]] Entry counted(const Entry& entry) noexcept;

  // A new foreign task may have to wait until all workers together have begun this number of
  // others.
  static constexpr int foreign_patience = 512;

  const std::vector<std::vector<int>> nearest_;  // empty: for each worker the next ones, in a
                                                 // circle
  const std::vector<std::vector<int>> within_;   // empty: all workers are at one distance
  // A bit for each worker whose queues may have entries. Its owner sets it before it pushes, and
  // clears it when it is about to sleep: a search costs as much as there is to find, however many
  // workers there are.
  const base::Zeros<std::atomic<std::uint64_t>> marks_;
  const std::unique_ptr<LocalQueues[]> queues_;
  const int workers_;
  OrderedQueue urgent_;  // priority above 0
  OrderedQueue last_;    // priority below 0
  ForeignQueue foreign_;
  std::atomic<std::uint64_t> far_steals_{0};    // any worker, as it steals
  // The number of entries of urgent_ and foreign_ together, so that the workers read one word. The
  // number is not exact: an entry is in its queue before it is counted.
  alignas(base::cache_line_bytes) std::atomic<std::int64_t> elsewhere_{0};
};

}  // namespace imbrex::sched
