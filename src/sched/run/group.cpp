// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "imbrex/error.hpp"

namespace imbrex::detail {

Group::Group(const std::uint16_t its_id, const int its_size, sched::Policy& its_policy)
    : id(its_id),
      size(its_size),
      policy(&its_policy),
      parkings(new ParkedAt[static_cast<std::size_t>(size)]) {}

void Group::wake_member(base::Parking& parking) noexcept {
  if (!parking.some_asleep()) return;
  const int first = standing ? 0 : look_at.load(std::memory_order_relaxed);
  for (int step = 0; step < size; ++step) {
    const int index = first + step < size ? first + step : first + step - size;
    const int place = parkings[index].place.load(std::memory_order_relaxed);
    if (place < 0 || !parking.wake_seen(place)) continue;
    if (index != first) look_at.store(index, std::memory_order_relaxed);
    return;
  }
}

}  // namespace imbrex::detail

namespace imbrex::sched {

void Groups::begin(const std::string& policy, const PolicySetup& setup, Division division) {
  policy_ = policy;
  const std::lock_guard guard(lock_);
  Group& all = add(setup.workers, make_policy(policy, setup));
  all.standing = true;
  for (int index = 0; index < all.size; ++index) all.parkings[index].place = index;
  add(1, make_policy("fifo", {.workers = 1, .nearest = {{}}, .domain = {0}, .wake = nullptr,
                              .wake_context = nullptr}));
  for (PlannedPlace& plan : division.places) {
    if (division.tree) distances_ = std::max(distances_, plan.level + 1);
    add_place(std::move(plan), setup);
  }
  place_count_ = static_cast<int>(division.places.size());
}

namespace {

// The part of `setup` that a policy for `workers` alone needs.
PolicySetup part_of(const PolicySetup& setup, const std::vector<int>& workers) {
  PolicySetup part{.workers = static_cast<int>(workers.size()), .nearest = {}, .domain = {},
                   .wake = nullptr, .wake_context = nullptr};
  std::vector<int> index_of(static_cast<std::size_t>(setup.workers), no_worker);
  int count = 0;
  for (const int worker : workers) index_of[static_cast<std::size_t>(worker)] = count++;
  std::vector<int> domains;  // numbered in the order of their appearance
  for (const int worker : workers) {
    std::vector<int>& nearest = part.nearest.emplace_back();
    const std::vector<int>& others = setup.nearest[static_cast<std::size_t>(worker)];
    std::vector<int> here{0};  // the number of the first ones that are here, for each distance
    for (const int other : others) {
      const int index = index_of[static_cast<std::size_t>(other)];
      if (index != no_worker) nearest.push_back(index);
      here.push_back(static_cast<int>(nearest.size()));
    }
    if (!setup.within.empty()) {
      std::vector<int>& within = part.within.emplace_back();
      for (const int near : setup.within[static_cast<std::size_t>(worker)]) {
        within.push_back(here[static_cast<std::size_t>(near)]);
      }
    }
    const int domain = setup.domain[static_cast<std::size_t>(worker)];
    const auto known = std::ranges::find(domains, domain);
    part.domain.push_back(static_cast<int>(known - domains.begin()));
    if (known == domains.end()) domains.push_back(domain);
  }
  return part;
}

}  // namespace

void Groups::add_place(PlannedPlace plan, const PolicySetup& setup) {
  const int size = static_cast<int>(plan.workers.size());
  const bool shares = everyone().policy->takes_all();
  const bool has_own = !shares && size != 0;  // a group without workers gets no task
  Group& place = add(size, has_own ? make_policy(policy_, part_of(setup, plan.workers)) : nullptr);
  place.standing = true;
  place.name = std::move(plan.name);
  place.kind = plan.kind;
  place.parent = plan.parent;
  place.level = plan.level;
  place.workers = std::move(plan.workers);
  place.memberships = std::make_unique<Membership[]>(static_cast<std::size_t>(size));
  for (int index = 0; index < size; ++index) {
    place.memberships[static_cast<std::size_t>(index)] = {&place, index, {}};
    place.parkings[index].place = place.workers[static_cast<std::size_t>(index)];
  }
  if (shares) place.policy->confine(place.id, place.workers);
}

Groups::~Groups() {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  for (std::size_t index = 0; index < count; ++index) {
    delete groups_[index].load(std::memory_order_relaxed);
  }
}

Group& Groups::add(const int size, std::unique_ptr<Policy> policy) {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  if (count == groups_max) {
    throw Error(fmt::format("imbrex: {} groups of workers at the same time, and at most {} are "
                            "possible: nest fewer parallel regions",
                            count + 1, groups_max));
  }
  auto* const group = new Group(static_cast<std::uint16_t>(count), size,
                                policy != nullptr ? *policy : *everyone().policy);
  group->owned = std::move(policy);
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
  return add(size, make_policy(policy_, {.workers = size,
                                         .nearest = {},  // the processors of its members are
                                                         // unknown
                                         .domain = std::vector<int>(static_cast<std::size_t>(size)),
                                         .wake = nullptr,
                                         .wake_context = nullptr}));
}

void Groups::give(Group& group) noexcept {
  const std::lock_guard guard(lock_);
  group.next_free = free_;
  free_ = &group;
}

std::uint64_t Groups::far_steals() const noexcept {
  std::uint64_t sum = 0;
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t index = 0; index < count; ++index) {
    const Group& group = of(static_cast<std::uint16_t>(index));
    if (group.owned != nullptr) sum += group.policy->far_steals();
  }
  return sum;
}

std::int64_t Groups::ready() const noexcept {
  std::int64_t sum = 0;
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t index = 0; index < count; ++index) {
    const Group& group = of(static_cast<std::uint16_t>(index));
    if (group.owned != nullptr) sum += group.policy->size();
  }
  return sum;
}

}  // namespace imbrex::sched
