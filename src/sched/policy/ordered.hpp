// SPDX-License-Identifier: BSD-3-Clause
// The policies with a strict order. Order of creation (fifo): the ready task created first, the
// reference of Pereira et al. 2021. Order of priority: the highest first, then the oldest;
// under `priority` a resumed task goes before other tasks of its priority. ma1, ma2, ma3 and sa are
// the policies of that paper; they differ in the priorities of tasks (Flow).
//
// The order is exact among the workers that share a cache: they have one queue. With several such
// domains, a worker takes tasks from other domains when its own queue is empty, the nearest first
// (docs/design/policies.md has the comparison).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sched/policy/ordered_queue.hpp"
#include "sched/policy/policy.hpp"

namespace imbrex::sched {

class Ordered final : public Policy {
 public:
  Ordered(const PolicySetup& setup, const Order& order);

  void push(Task& task, Place place, Origin origin) override {
    queue_of(place.worker).push(task, origin == Origin::resumed, no_worker);
  }
  Entry pop(int worker) override { return count_ == 1 ? queues_[0].pop() : pop_near(worker); }
  Entry steal(int, bool) override { return {}; }
  bool take(int, Task&) override { return false; }
  void raise(Task& task, int priority) override;
  std::size_t extract(int worker, const void* kind, std::span<Task*> to) override;
  std::int64_t size() const override;
  bool empty(int worker) const override {
    return queue_of(worker).size() == 0 && (count_ == 1 || common().size() == 0);
  }
  task::Flow flow() const override { return order_.flow; }
  int urgency_of(const int priority) const noexcept override {
    return order_.by_priority ? priority : 0;
  }

  OrderedQueue* only_queue() override { return count_ == 1 ? &queues_[0] : nullptr; }

 private:
  // With more than one queue, the last one has the tasks that belong to no domain: tasks that
  // threads other than workers have made ready, and raised tasks, whose first entry may be in any
  // queue.
  [[nodiscard]] OrderedQueue& queue_of(const int worker) const noexcept {
    if (count_ == 1) return queues_[0];
    return worker == no_worker ? common() : queues_[domain_[static_cast<std::size_t>(worker)]];
  }
  [[nodiscard]] OrderedQueue& common() const noexcept { return queues_[count_ - 1]; }
  // Takes an entry in the order between the worker's own domain and the tasks without a domain.
  [[nodiscard, gnu::noinline]] Entry pop_near(int worker) noexcept;

  const Order order_;
  const std::vector<std::vector<int>> near_to_far_;
  const std::vector<int> domain_;  // by worker
  const std::size_t count_;
  const std::unique_ptr<OrderedQueue[]> queues_;
};

}  // namespace imbrex::sched
