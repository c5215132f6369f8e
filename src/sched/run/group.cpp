// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/group.hpp"

#include <fmt/format.h>

#include <mutex>

#include "imbrex/error.hpp"

namespace imbrex::detail {

Group::Group(const std::uint16_t its_id, const int its_size,
             std::unique_ptr<sched::Policy> its_policy)
    : id(its_id),
      size(its_size),
      policy(std::move(its_policy)),
      parkings(new ParkedAt[static_cast<std::size_t>(size)]) {}

void Group::wake_member(base::Parking& parking) const noexcept {
  for (int index = 0; index < size; ++index) {
    const int place = parkings[index].place.load(std::memory_order_relaxed);
    if (place >= 0 && parking.wake(place)) return;
  }
}

}  // namespace imbrex::detail

namespace imbrex::sched {

void Groups::begin(const std::string& policy, const PolicySetup& everyone) {
  policy_ = policy;
  Group& all = add(everyone.workers, make_policy(policy, everyone));
  for (int index = 0; index < all.size; ++index) all.parkings[index].place = index;
  add(1, make_policy("fifo", {.workers = 1, .nearest = {{}}, .domain = {0}, .wake = nullptr,
                              .wake_context = nullptr}));
}

Groups::~Groups() {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  for (std::size_t index = 0; index < count; ++index) {
    delete groups_[index].load(std::memory_order_relaxed);
  }
}

// REQUIRES: lock_, or nobody else knows of us.
Group& Groups::add(const int size, std::unique_ptr<Policy> policy) {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  if (count == groups_max) {
    throw Error(fmt::format("imbrex: {} groups of workers at once: at most {} are possible; open "
                            "fewer parallel regions inside each other",
                            count + 1, groups_max));
  }
  auto* const group = new Group(static_cast<std::uint16_t>(count), size, std::move(policy));
  groups_[count].store(group, std::memory_order_release);
  count_.store(count + 1, std::memory_order_release);
  return *group;
}

Group& Groups::take(const int size) {
  if (everyone().policy->takes_all()) {
    throw Error(fmt::format("imbrex: IMBREX_POLICY={} replays one group of workers, and this "
                            "program forms others (OpenMP teams): choose another policy",
                            policy_));
  }
  const std::lock_guard guard(lock_);
  for (Group** link = &free_; *link != nullptr; link = &(*link)->next_free) {
    if ((*link)->size != size) continue;
    Group& group = **link;
    *link = group.next_free;
    return group;
  }
  // Neighbours in the group first: its members' processors are not known yet.
  std::vector<std::vector<int>> nearest(static_cast<std::size_t>(size));
  for (int index = 0; index < size; ++index) {
    for (int step = 1; step < size; ++step) {
      nearest[static_cast<std::size_t>(index)].push_back((index + step) % size);
    }
  }
  return add(size, make_policy(policy_, {.workers = size,
                                         .nearest = std::move(nearest),
                                         .domain = std::vector<int>(static_cast<std::size_t>(size)),
                                         .wake = nullptr,
                                         .wake_context = nullptr}));
}

void Groups::give(Group& group) noexcept {
  const std::lock_guard guard(lock_);
  group.next_free = free_;
  free_ = &group;
}

std::int64_t Groups::ready() const noexcept {
  std::int64_t sum = 0;
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t index = 0; index < count; ++index) {
    sum += of(static_cast<std::uint16_t>(index)).policy->size();
  }
  return sum;
}

}  // namespace imbrex::sched
