// SPDX-License-Identifier: BSD-3-Clause
// The policies over one shared queue. By creation alone (fifo): among ready tasks the one created
// first, the reference of Pereira et al. 2021. By priority: the highest first, then the one created
// first; under `priority` a resumed task goes before those. ma1, ma2, ma3 and sa are the policies
// of that paper: they differ in the priorities that tasks have (Flow).
#include "sched/policy/ordered_queue.hpp"
#include "sched/policy.hpp"

namespace imbrex::sched {

namespace {

class Ordered final : public Policy {
 public:
  explicit Ordered(const Order& order) : order_(order) {}

  void push(Task& task, Place, const Origin origin) override {
    const int level = order_.by_priority ? task::queued_priority(task) : 0;
    const bool resumed = origin == Origin::resumed;
    queue_.push(task, {level, order_.resumed_first && resumed, task.id}, resumed);
  }
  Entry pop(int) override { return queue_.pop(); }
  Entry steal(int, bool) override { return {}; }
  bool take(int, Task&) override { return false; }
  void raise(Task& task, const int priority) override {
    if (!order_.by_priority) return;
    // A second entry at the higher place; the first one will be stale.
    task::add_reference(task);
    queue_.push(task, {priority, false, task.id}, false);
  }
  std::int64_t size() const override { return queue_.size(); }
  bool empty(int) const override { return queue_.size() == 0; }
  task::Flow flow() const override { return order_.flow; }

 private:
  const Order order_;
  OrderedQueue queue_;
};

}  // namespace

std::unique_ptr<Policy> make_ordered(const Order& order) {
  return std::make_unique<Ordered>(order);
}

}  // namespace imbrex::sched
