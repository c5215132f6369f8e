// SPDX-License-Identifier: BSD-3-Clause
// Group: workers that run each other's tasks. All workers that the runtime makes form group 0, and
// parts of them form one for each place (imbrex/detail/place.hpp); a plug-in forms others, for as
// long as it needs them (a team of OpenMP). A task belongs to its parent's group, or to the one
// that it is given, and is begun by a member of it, and resumed by one, unless it is tied to a
// thread.
//
// A worker may belong to several groups at once, since what it runs on one stack may join a group
// while what it has suspended on another still belongs to one. It serves the one joined last first.
// Of the groups to which it belongs for good, group 0 and places, it serves the one first in which
// it last found a task; and now and then it looks into the others, so that none waits for ever.
//
// Thread safety: a Membership is its worker's; `parkings` is written by the member and read by
// whoever wakes one: a stale value wakes a thread for nothing. The rest is constant while a group
// is in use, and handed from one use to the next under the lock of Groups.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "base/parking.hpp"
#include "base/spin_lock.hpp"
#include "base/zeros.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/waist.hpp"
#include "sched/policy/division.hpp"
#include "sched/policy/policy.hpp"
#include "sched/policy/rules.hpp"

namespace imbrex::detail {

struct Group {
  // Its member writes it with every region, so each has a cache line.
  struct alignas(base::cache_line_bytes) ParkedAt {
    std::atomic<int> place{-1};  // -1: not there
  };

  Group(std::uint16_t its_id, int its_size, sched::Policy& its_policy);

  const std::uint16_t id;
  const int size;
  sched::Policy* const policy;
  std::unique_ptr<sched::Policy> owned;              // the same; null: it is that of group 0
  const std::unique_ptr<ParkedAt[]> parkings;        // of the members
  Group* next_free = nullptr;                        // of the same size
  // Tasks that gave way, but for tied ones; guarded by RuntimeState::behind_lock, under which the
  // count is written.
  std::deque<sched::Behind> behind;
  std::atomic<std::int64_t> behind_count{0};

  bool standing = false;                             // members belong to it for good
  std::string name;                                  // of a place, as are the next five
  PlaceKind kind = PlaceKind::memory;
  int parent = -1;                                   // its position; -1: all workers
  int level = 0;                                     // of all workers; the others' are above
  std::vector<int> workers;
  std::unique_ptr<Membership[]> memberships;         // of its workers

  // Where the last search for a sleeper ended: the next goes on there. Whoever wakes one writes it.
  std::atomic<int> look_at{0};

  // One member that sleeps, if there is one.
  void wake_member(base::Parking& parking) noexcept;
};

}  // namespace imbrex::detail

namespace imbrex::sched {

using detail::Group;
using detail::Membership;

// All groups of a runtime. Those not in use are kept, by size.
// Thread safety: all by any thread.
class Groups {
 public:
  static constexpr std::size_t groups_max = 65'535;
  // The group of tasks that run at once, where their creator stands; of() does not know it.
  static constexpr std::uint16_t in_place = 65'535;

  // The group of the workers that the runtime makes, and that of those that belong to none; then
  // the places. `setup` is for all workers.
  void begin(const std::string& policy, const PolicySetup& setup, Division division);
  [[nodiscard]] Group& everyone() const noexcept { return of(0); }
  [[nodiscard]] Group& nobody() const noexcept { return of(1); }
  [[nodiscard]] int place_count() const noexcept { return place_count_; }
  // How many distances there are between two workers in the tree of places; 0: there is no tree.
  [[nodiscard]] int distances() const noexcept { return distances_; }
  // Constant from begin() on. REQUIRES: 0 <= index < place_count().
  [[nodiscard]] Group& place(const int index) const noexcept {
    return of(static_cast<std::uint16_t>(first_place + index));
  }
  // The position of the place whose group has that id; -1 if that is no place.
  [[nodiscard]] int place_index(const std::uint16_t id) const noexcept {
    const int index = id - first_place;
    return index >= 0 && index < place_count_ ? index : -1;
  }
  // Throws Error if there are too many, or if the policy cannot order several groups.
  [[nodiscard]] Group& take(int size);
  void give(Group& group) noexcept;
  [[nodiscard]] Group& of(const std::uint16_t id) const noexcept {
    return *groups_[id].load(std::memory_order_acquire);  // pairs with add()
  }
  // How many tasks are ready, about.
  [[nodiscard]] std::int64_t ready() const noexcept;
  // As Statistics has it.
  [[nodiscard]] std::uint64_t far_steals() const noexcept;
  ~Groups();

 private:
  static constexpr int first_place = 2;  // the id of its group
  // A null `policy`: that of everyone().
  Group& add(int size, std::unique_ptr<Policy> policy) IMBREX_REQUIRES(lock_);
  void add_place(PlannedPlace plan, const PolicySetup& setup) IMBREX_REQUIRES(lock_);

  std::string policy_;
  int place_count_ = 0;
  int distances_ = 0;
  base::SpinLock lock_;
  Group* free_ IMBREX_GUARDED_BY(lock_) = nullptr;
  std::atomic<std::size_t> count_{0};  // written under lock_, as is a new entry of the next
  const base::Zeros<std::atomic<Group*>> groups_{base::zeros<std::atomic<Group*>>(groups_max)};
};

}  // namespace imbrex::sched
