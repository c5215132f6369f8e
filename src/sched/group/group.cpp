// SPDX-License-Identifier: BSD-3-Clause
#include "sched/group/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "imbrex/error.hpp"
#include "sched/policy/ordered.hpp"
#include "sched/runtime.hpp"

namespace imbrex::detail {

Group::Group(const std::uint16_t its_id, const int its_size,
             std::unique_ptr<sched::Policy> its_policy)
    : id(its_id),
      size(its_size),
      policy(std::move(its_policy)),
      stealing(dynamic_cast<sched::Stealing*>(policy.get())),
      ordered(dynamic_cast<sched::Ordered*>(policy.get())),
      line(ordered != nullptr ? ordered->only_queue() : nullptr),
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

void push_to_group(Worker& worker, Task& task, const int only, const Origin origin) {
  Runtime& runtime = *worker.runtime;
  const std::uint16_t id = task.group;  // the task may be gone when it is queued
  if (worker.line != nullptr && id == worker.group) [[likely]] {
    worker.steal_again_at = 0;  // there is something of its own
    worker.membership->group->ordered->push_to(*worker.line, task, origin, worker.id);
    base::light_fence();
    if (runtime.parking.asleep() != 0) [[unlikely]] wake_neighbour(worker);
    return;
  }
  const int index = id == worker.group ? worker.membership->index : no_worker;
  runtime.groups.of(id).policy->push(task, {index, only}, origin);
  base::light_fence();
  if (runtime.parking.asleep() == 0) return;
  if (id == worker.group && only == no_worker) {
    wake_neighbour(worker);
  } else {
    runtime.groups.of(id).wake_member(runtime.parking);
  }
}

// What it took cost the other one about what the theft took: once for the disturbance, and again
// for each task, whose data had to move. Where that was more than the work gained, the other is
// faster alone, and the thief waits before it disturbs again: the longer, the more often that was.
void judge_theft(Worker& worker, const std::uint64_t now, const std::uint64_t longest) noexcept {
  const std::uint64_t tasks = worker.recorder.tasks.get() - worker.stolen_before;
  if (now - worker.stolen_at < worker.theft_price * (1 + tasks)) {
    worker.theft_pause = std::min(2 * worker.theft_pause, longest);
    worker.steal_again_at = now + worker.theft_pause;
  } else {
    worker.theft_pause = worker.theft_price;
  }
  worker.stolen_at = 0;
}

namespace {

// The first of a line that another worker pushed to last.
Entry take_from_others(Worker& worker, OrderedQueue& line, const bool eager) noexcept {
  const std::uint64_t now = base::ticks();
  const std::uint64_t brief = worker.runtime->brief;
  if (const std::uint32_t changes = line.changes(); changes != worker.changes_seen) {
    worker.changes_seen = changes;
    worker.changed_at = now;
  }
  const bool disturbs = now - worker.changed_at < brief;  // others are at the queue, too
  if (worker.stolen_at != 0 && disturbs) judge_theft(worker, now, 32 * brief);
  worker.stolen_at = 0;
  if (line.size() < (eager ? 1 : 2) || now < worker.steal_again_at) return {};
  const Entry entry = line.pop();
  if (entry) {
    worker.changes_seen = line.changes();
    worker.stolen_at = now;
    worker.stolen_before = worker.recorder.tasks.get();
    worker.theft_price = brief / 2;  // a lock that two want, and a task's data
  }
  return entry;
}

}  // namespace

Entry find_in_line(Worker& worker, const bool eager) noexcept {
  OrderedQueue& line = *worker.line;
  Entry entry;
  // While it waits it does not even look: that alone would disturb.
  if (worker.steal_again_at == 0 || base::ticks() >= worker.steal_again_at) {
    worker.steal_again_at = 0;
    const int pusher = line.pusher();
    const bool own = pusher == worker.id || pusher == no_worker;
    if (own) worker.stolen_at = 0;
    entry = own ? line.pop() : take_from_others(worker, line, eager);
  }
  return entry ? entry : find_in_outer_groups(*worker.membership, eager);
}

void wake_neighbour(Worker& worker) noexcept {
  if (worker.keeps != 0) {
    --worker.keeps;
    return;
  }
  worker.membership->group->wake_member(worker.runtime->parking);
}

}  // namespace imbrex::sched
