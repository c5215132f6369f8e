// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy/ordered.hpp"

#include <algorithm>
#include <utility>

namespace imbrex::sched {

namespace {

// For each domain the order of all domains: itself first, then from near to far.
std::vector<std::vector<int>> near_to_far(const PolicySetup& setup) {
  std::vector<std::vector<int>> orders;
  for (int worker = 0; worker < setup.workers; ++worker) {
    const auto place = static_cast<std::size_t>(worker);
    // Domains are numbered as they turn up.
    if (setup.domain[place] < static_cast<int>(orders.size())) continue;
    std::vector<int>& order = orders.emplace_back(1, setup.domain[place]);
    if (setup.nearest.empty()) continue;
    for (const int other : setup.nearest[place]) {
      const int domain = setup.domain[static_cast<std::size_t>(other)];
      if (std::find(order.begin(), order.end(), domain) == order.end()) order.push_back(domain);
    }
  }
  return orders;
}

}  // namespace

Ordered::Ordered(const PolicySetup& setup, const Order& order)
    : order_(order),
      near_to_far_(near_to_far(setup)),
      domain_(setup.domain),
      // A single domain needs no other queue.
      count_(near_to_far_.size() == 1 ? 1 : near_to_far_.size() + 1),
      queues_(new OrderedQueue[count_]) {
  for (std::size_t index = 0; index < count_; ++index) {
    queues_[index].order_by({.by_priority = order.by_priority,
                             .resumed_first = order.resumed_first,
                             .raises = order.by_priority && order.flow.raises()});
  }
}

void Ordered::raise(Task& task, const int priority) {
  if (!order_.by_priority) return;
  // A second entry at the higher place; the first entry becomes stale.
  task::add_reference(task);
  queue_of(no_worker).push(task, {priority, false, task.id}, false);
}

std::size_t Ordered::extract(int, const void* const kind, const std::span<Task*> to) {
  std::size_t count = 0;
  for (std::size_t index = 0; index < count_; ++index) {
    count += queues_[index].extract(kind, to.subspan(count));
  }
  return count;
}

std::int64_t Ordered::size() const {
  std::int64_t sum = 0;
  for (std::size_t index = 0; index < count_; ++index) sum += queues_[index].size();
  return sum;
}

Entry Ordered::pop_near(const int worker) noexcept {
  const int domain = domain_[static_cast<std::size_t>(worker)];
  if (common().size() != 0 && common().goes_before(queues_[domain])) {
    if (const Entry entry = common().pop()) return entry;
  }
  for (const int each : near_to_far_[static_cast<std::size_t>(domain)]) {
    if (const Entry entry = queues_[each].pop()) return entry;
  }
  return common().pop();
}

std::unique_ptr<Policy> make_ordered(const PolicySetup& setup, const Order& order) {
  return std::make_unique<Ordered>(setup, order);
}

}  // namespace imbrex::sched
