// SPDX-License-Identifier: BSD-3-Clause
// Group: workers that run each other's tasks. All workers that the runtime makes form group 0, and
// parts of them form one for each place (imbrex/values/place.hpp); a plug-in forms others, for as
// long as it needs them (a team of OpenMP). A task belongs to its parent's group, or to the group
// that it is given. A member of the group begins it, and a member resumes it, unless it is tied to
// a thread.
//
// A worker may belong to several groups at once: a task on one stack may join a group while a
// suspended task on another stack still belongs to one. The worker serves the group joined last
// first. Among the groups to which it belongs for good, group 0 and places, it first serves the one
// in which it last found a task; it checks the others now and then, so that no task waits for ever.
//
// Thread safety: only its worker uses a Membership. The member writes `parkings`, and waking
// threads read it: a stale value wakes a thread for nothing. The rest is constant while a group is
// in use, and handed from one use to the next under the lock of Groups.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "base/sleep/parking.hpp"
#include "base/spin_lock.hpp"
#include "base/zeros.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/waist.hpp"
#include "sched/policy/division.hpp"
#include "sched/policy/policy.hpp"
#include "sched/policy/rules.hpp"

namespace imbrex::detail {

struct Group {
  // Its member writes it in every region, so each entry has a cache line.
  struct alignas(base::cache_line_bytes) ParkedAt {
    std::atomic<int> place{-1};  // -1: not there
  };

  Group(std::uint16_t its_id, int its_size, sched::Policy& its_policy);

  const std::uint16_t id;
  const int size;
  sched::Policy* const policy;
  std::unique_ptr<sched::Policy> owned;              // the policy; null: the policy of group 0
  const std::unique_ptr<ParkedAt[]> parkings;        // places of the members in Parking
  Group* next_free = nullptr;                        // next one of the same size
  // Tasks that gave way, except tied ones; guarded by RuntimeState::behind_lock, under which the
  // count is written, too.
  std::deque<sched::Behind> behind;
  std::atomic<std::int64_t> behind_count{0};

  bool standing = false;                             // members belong to it for good
  std::string name;                                  // for a place, as are the next five
  PlaceKind kind = PlaceKind::memory;
  int parent = -1;                                   // position of the parent; -1: all workers
  int level = 0;                                     // level of the place; all workers have 0, the
                                                     // others more
  std::vector<int> workers;
  std::unique_ptr<Membership[]> memberships;         // one for each worker

  // Where the last search for a sleeper ended; the next search begins there. The waking thread
  // writes it.
  std::atomic<int> look_at{0};

  // Whether it has tasks that are ready, or that gave way, about.
  [[nodiscard]] bool some_ready() const noexcept {
    return policy->size() != 0 || behind_count.load(std::memory_order_relaxed) != 0;
  }
  // Wakes one sleeping member, if there is one.
  void wake_member(base::Parking& parking) noexcept;
};

}  // namespace imbrex::detail

namespace imbrex::sched {

using detail::Group;
using detail::Membership;

// All groups of a runtime. Unused ones are kept, by size. Thread safety: any thread calls every
// function.
class Groups {
 public:
  static constexpr std::size_t groups_max = 65'535;
  // The group of tasks that run at once, at their creation; of() does not know it.
  static constexpr std::uint16_t in_place = 65'535;

  // Makes the group of the runtime's workers, the group of workers without one, and the places.
  // `setup` is for all workers.
  void begin(const std::string& policy, const PolicySetup& setup, Division division);
  [[nodiscard]] Group& everyone() const noexcept { return of(0); }
  [[nodiscard]] Group& nobody() const noexcept { return of(1); }
  [[nodiscard]] int place_count() const noexcept { return place_count_; }
  // The number of distances between workers in the tree of places; 0: there is no tree.
  [[nodiscard]] int distances() const noexcept { return distances_; }
  // Constant from begin() on. REQUIRES: 0 <= index < place_count().
  [[nodiscard]] Group& place(const int index) const noexcept {
    return of(static_cast<std::uint16_t>(first_place + index));
  }
  // The position of the place whose group has that id; -1 if there is no such place.
  [[nodiscard]] int place_index(const std::uint16_t id) const noexcept {
    const int index = id - first_place;
    return index >= 0 && index < place_count_ ? index : -1;
  }
  // Throws Error if there are too many groups, or if the policy cannot order several.
  [[nodiscard]] Group& take(int size);
  void give(Group& group) noexcept;
  [[nodiscard]] Group& of(const std::uint16_t id) const noexcept {
    return *groups_[id].load(std::memory_order_acquire);  // pairs with add()
  }
  // The number of ready tasks, about.
  [[nodiscard]] std::int64_t ready() const noexcept;
  // Statistics::far_steals.
  [[nodiscard]] std::uint64_t far_steals() const noexcept;
  ~Groups();

 private:
  static constexpr int first_place = 2;  // id of its group
  // A null `policy`: the policy of everyone().
  Group& add(int size, std::unique_ptr<Policy> policy) IMBREX_REQUIRES(lock_);
  void add_place(PlannedPlace plan, const PolicySetup& setup) IMBREX_REQUIRES(lock_);

  std::string policy_;
  int place_count_ = 0;
  int distances_ = 0;
  base::SpinLock lock_;
  Group* free_ IMBREX_GUARDED_BY(lock_) = nullptr;
  std::atomic<std::size_t> count_{0};  // written under lock_, as is a new entry of groups_
  const base::Zeros<std::atomic<Group*>> groups_{base::zeros<std::atomic<Group*>>(groups_max)};
};

}  // namespace imbrex::sched
