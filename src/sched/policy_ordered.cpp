// SPDX-License-Identifier: BSD-3-Clause
// Two policies over one shared queue. fifo: among ready tasks the one created first (the reference
// of Pereira et al. 2021). priority: the highest level first; within a level a resumed task first,
// then the one created first.
#include "sched/ordered_queue.hpp"
#include "sched/policy.hpp"

namespace imbrex::sched {

namespace {

class Ordered final : public Policy {
 public:
  explicit Ordered(const bool by_priority) : by_priority_(by_priority) {}

  void push(Task& task, Place, const Origin origin) override {
    const int level = by_priority_ ? task.priority.load(std::memory_order_relaxed) : 0;
    const bool resumed = origin == Origin::resumed;
    queue_.push(task, {level, by_priority_ && resumed, task.id}, resumed);
  }
  Entry pop(int) override { return queue_.pop(); }
  Entry steal(int, bool) override { return {}; }
  bool take(int, Task&) override { return false; }
  void raise(Task& task, const int priority) override {
    if (!by_priority_) return;
    // A second entry at the higher place; the first one will be stale.
    task::add_reference(task);
    queue_.push(task, {priority, false, task.id}, false);
  }
  std::int64_t size() const override { return queue_.size(); }
  bool empty(int) const override { return queue_.size() == 0; }

 private:
  const bool by_priority_;
  OrderedQueue queue_;
};

}  // namespace

std::unique_ptr<Policy> make_ordered(const bool by_priority) {
  return std::make_unique<Ordered>(by_priority);
}

}  // namespace imbrex::sched
