// SPDX-License-Identifier: BSD-3-Clause
// Work stealing, in two orders.
//
// steal: each worker runs its newest task first and steals the oldest of others.
// default: the same for forked tasks, which makes recursion run depth first in little memory; but
// tasks with dependencies run oldest first, since newest-first order lets the ranks of a graph with
// messages wait for each other (docs/design/default-policy.md). What was begun goes before both.
//
// In both, priorities other than 0 are honoured: above 0 before, below 0 after all others.
#include <atomic>
#include <deque>
#include <mutex>

#include "base/deque.hpp"
#include "base/spin_lock.hpp"
#include "sched/ordered_queue.hpp"
#include "sched/policy.hpp"

namespace imbrex::sched {

namespace {

// Tasks that threads which are no workers made ready, oldest first.
class Foreign {
 public:
  void push(const Entry& entry) {
    const std::lock_guard guard(lock_);
    entries_.push_back(entry);
    size_.fetch_add(1, std::memory_order_release);
  }
  [[nodiscard]] Entry pop() noexcept {
    if (size() == 0) return {};
    const std::lock_guard guard(lock_);
    if (entries_.empty()) return {};
    const Entry entry = entries_.front();
    entries_.pop_front();
    size_.fetch_sub(1, std::memory_order_relaxed);
    return entry;
  }
  [[nodiscard]] std::int64_t size() const noexcept {
    return size_.load(std::memory_order_acquire);
  }

 private:
  base::SpinLock lock_;  // guards entries_
  std::deque<Entry> entries_;
  std::atomic<std::int64_t> size_{0};  // written under lock_
};

class Stealing final : public Policy {
 public:
  Stealing(const PolicySetup& setup, const bool graph_order)
      : graph_order_(graph_order),
        nearest_(setup.nearest),
        queues_(new Queues[static_cast<std::size_t>(setup.workers)]),
        workers_(setup.workers) {}

  void push(Task& task, const Place place, const Origin origin) override {
    if (task.priority.load(std::memory_order_relaxed) != 0 || place.worker == no_worker)
        [[unlikely]] {
      push_rare(task, origin == Origin::resumed);
      return;
    }
    Queues& own = queues_[place.worker];
    Queue* queue = &own.newest_first;
    if (origin == Origin::resumed) queue = &own.resumed;
    if (graph_order_ && origin == Origin::released) queue = &own.oldest_first;
    queue->push(&task);
  }

  Entry pop(const int worker) override {
    Queues& own = queues_[worker];
    if (urgent_.size() == 0) [[likely]] {
      if (Task* const task = own.resumed.steal()) return {task, true};  // by the owner: the oldest
      if (Task* const task = own.newest_first.pop()) return {task, false};
    }
    return pop_more(own);
  }

  Entry steal(const int worker, const bool eager) override {
    for (const int victim : nearest_[static_cast<std::size_t>(worker)]) {
      Queues& queues = queues_[victim];
      for (Queue* const queue : {&queues.resumed, &queues.newest_first, &queues.oldest_first}) {
        // A single task, as in a chain, is likely to be run at once by its owner; taking it would
        // move its data to and fro. Unless nothing else turns up for a while.
        if (queue->size() < (eager ? 1 : 2)) continue;
        if (Task* const task = queue->steal()) return {task, queue == &queues.resumed};
      }
    }
    return last_.pop();
  }

  bool take(const int worker, Task& task) override {
    for (Queue* const queue : {&queues_[worker].newest_first, &queues_[worker].oldest_first}) {
      if (queue->back() == &task) return queue->pop() == &task;  // false: a thief had it
    }
    return false;
  }

  void raise(Task& task, const int priority) override {
    if (priority <= 0) return;
    task::add_reference(task);
    urgent_.push(task, {priority, false, task.id}, false);
  }

  std::int64_t size() const override {
    std::int64_t sum = urgent_.size() + last_.size() + foreign_.size();
    for (int worker = 0; worker < workers_; ++worker) sum += queues_[worker].size();
    return sum;
  }

  bool empty(const int worker) const override {
    return queues_[worker].size() == 0 && urgent_.size() == 0;
  }

 private:
  using Queue = base::Deque<Task>;
  struct Queues {
    Queue resumed;       // oldest first
    Queue newest_first;
    Queue oldest_first;
    [[nodiscard]] std::int64_t size() const noexcept {
      return resumed.size() + newest_first.size() + oldest_first.size();
    }
  };

  [[gnu::noinline]] void push_rare(Task& task, const bool resumed) {
    const int level = task.priority.load(std::memory_order_relaxed);
    if (level != 0) {
      (level > 0 ? urgent_ : last_).push(task, {level, resumed, task.id}, resumed);
    } else {
      foreign_.push({&task, resumed});
    }
  }

  [[gnu::noinline]] Entry pop_more(Queues& own) {
    if (const Entry entry = urgent_.pop()) return entry;
    if (Task* const task = own.resumed.steal()) return {task, true};
    if (Task* const task = own.newest_first.pop()) return {task, false};
    while (own.oldest_first.size() != 0) {  // steal() fails for a thief's sake too
      if (Task* const task = own.oldest_first.steal()) return {task, false};
    }
    return foreign_.pop();
  }

  const bool graph_order_;
  const std::vector<std::vector<int>> nearest_;
  const std::unique_ptr<Queues[]> queues_;
  const int workers_;
  OrderedQueue urgent_;  // priority above 0
  OrderedQueue last_;    // priority below 0
  Foreign foreign_;
};

}  // namespace

std::unique_ptr<Policy> make_stealing(const PolicySetup& setup, const bool graph_order) {
  return std::make_unique<Stealing>(setup, graph_order);
}

}  // namespace imbrex::sched
