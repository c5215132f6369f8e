// SPDX-License-Identifier: BSD-3-Clause
// The policies in an order. By creation alone (fifo): among ready tasks the one created first, the
// reference of Pereira et al. 2021. By priority: the highest first, then the one created first;
// under `priority` a resumed task goes before those. ma1, ma2, ma3 and sa are the policies of that
// paper: they differ in the priorities that tasks have (Flow).
//
// The order is exact among the workers that share a cache: they have one queue. Where there are
// several such domains, one takes from others when its own queue is empty, the nearest first
// (docs/design/policies.md has what was compared).
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sched/policy/ordered_queue.hpp"
#include "sched/policy.hpp"

namespace imbrex::sched {

namespace {

// By domain: all domains, itself first, then near to far.
std::vector<std::vector<int>> near_to_far(const PolicySetup& setup) {
  std::vector<std::vector<int>> orders;
  for (int worker = 0; worker < setup.workers; ++worker) {
    const auto place = static_cast<std::size_t>(worker);
    // Domains are numbered as they turn up.
    if (setup.domain[place] < static_cast<int>(orders.size())) continue;
    std::vector<int>& order = orders.emplace_back(1, setup.domain[place]);
    for (const int other : setup.nearest[place]) {
      const int domain = setup.domain[static_cast<std::size_t>(other)];
      if (std::find(order.begin(), order.end(), domain) == order.end()) order.push_back(domain);
    }
  }
  return orders;
}

class Ordered final : public Policy {
 public:
  Ordered(const PolicySetup& setup, const Order& order)
      : order_(order),
        near_to_far_(near_to_far(setup)),
        domain_(setup.domain),
        // One domain needs no other queue.
        count_(near_to_far_.size() == 1 ? 1 : near_to_far_.size() + 1),
        queues_(new OrderedQueue[count_]) {}

  void push(Task& task, const Place place, const Origin origin) override {
    const int level = order_.by_priority ? task::queued_priority(task) : 0;
    const bool resumed = origin == Origin::resumed;
    queue_of(place.worker)
        .push(task, {level, order_.resumed_first && resumed, task.id}, resumed);
  }
  Entry pop(const int worker) override {
    return count_ == 1 ? queues_[0].pop() : pop_near(worker);
  }
  Entry steal(int, bool) override { return {}; }
  bool take(int, Task&) override { return false; }
  void raise(Task& task, const int priority) override {
    if (!order_.by_priority) return;
    // A second entry at the higher place; the first one will be stale.
    task::add_reference(task);
    queue_of(no_worker).push(task, {priority, false, task.id}, false);
  }
  std::int64_t size() const override {
    std::int64_t sum = 0;
    for (std::size_t index = 0; index < count_; ++index) sum += queues_[index].size();
    return sum;
  }
  bool empty(const int worker) const override { return queue_of(worker).size() == 0; }
  task::Flow flow() const override { return order_.flow; }

 private:
  // The last one, if there is more than one, has what belongs to no domain: what others than
  // workers have made ready, and what was raised, whose first entry may be anywhere.
  [[nodiscard]] OrderedQueue& queue_of(const int worker) const noexcept {
    if (count_ == 1) return queues_[0];
    return worker == no_worker ? common() : queues_[domain_[static_cast<std::size_t>(worker)]];
  }
  [[nodiscard]] OrderedQueue& common() const noexcept { return queues_[count_ - 1]; }

  // In the order between the worker's own domain and what belongs to none.
  [[gnu::noinline]] Entry pop_near(const int worker) noexcept {
    const int domain = domain_[static_cast<std::size_t>(worker)];
    if (common().size() != 0 && common().goes_before(queues_[domain])) {
      if (const Entry entry = common().pop()) return entry;
    }
    for (const int each : near_to_far_[static_cast<std::size_t>(domain)]) {
      if (const Entry entry = queues_[each].pop()) return entry;
    }
    return common().pop();
  }

  const Order order_;
  const std::vector<std::vector<int>> near_to_far_;
  const std::vector<int> domain_;  // by worker
  const std::size_t count_;
  const std::unique_ptr<OrderedQueue[]> queues_;
};

}  // namespace

std::unique_ptr<Policy> make_ordered(const PolicySetup& setup, const Order& order) {
  return std::make_unique<Ordered>(setup, order);
}

}  // namespace imbrex::sched
