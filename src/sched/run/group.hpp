// SPDX-License-Identifier: BSD-3-Clause
// Group: workers that run each other's tasks. All workers that the runtime makes form group 0; a
// plug-in forms others, for as long as it needs them (a team of OpenMP). A task belongs to its
// parent's group and is begun by a member of it; where it goes on depends on whether it is tied.
//
// A worker may belong to several groups at once, since what it runs on one stack may join a group
// while what it has suspended on another still belongs to one. It serves the one joined last first.
//
// Thread safety: a Membership is its worker's; `parkings` is written by the member and read by
// whoever wakes one: a stale value wakes a thread for nothing. The rest is constant while a group
// is in use, and handed from one use to the next under the lock of Groups.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/arch.hpp"
#include "base/parking.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/waist.hpp"
#include "sched/policy/policy.hpp"

namespace imbrex::detail {

struct Group {
  // Its member writes it with every region, so each has a cache line.
  struct alignas(base::cache_line_bytes) ParkedAt {
    std::atomic<int> place{-1};  // -1: not there
  };

  Group(std::uint16_t its_id, int its_size, std::unique_ptr<sched::Policy> its_policy);

  const std::uint16_t id;
  const int size;
  const std::unique_ptr<sched::Policy> policy;
  const std::unique_ptr<ParkedAt[]> parkings;        // of the members
  Group* next_free = nullptr;                        // of the same size

  // One member that sleeps, if there is one.
  void wake_member(base::Parking& parking) const noexcept;
};

}  // namespace imbrex::detail

namespace imbrex::sched {

using detail::Group;
using detail::Membership;

// All groups of a runtime. Those not in use are kept, by size.
// Thread safety: all by any thread.
class Groups {
 public:
  static constexpr std::size_t groups_max = 4096;

  // The group of the workers that the runtime makes, and that of those that belong to none.
  void begin(const std::string& policy, const PolicySetup& everyone);
  [[nodiscard]] Group& everyone() const noexcept { return of(0); }
  [[nodiscard]] Group& nobody() const noexcept { return of(1); }
  // Throws Error if there are too many, or if the policy cannot order several groups.
  [[nodiscard]] Group& take(int size);
  void give(Group& group) noexcept;
  [[nodiscard]] Group& of(const std::uint16_t id) const noexcept {
    return *groups_[id].load(std::memory_order_acquire);  // pairs with add()
  }
  // How many tasks are ready, about.
  [[nodiscard]] std::int64_t ready() const noexcept;
  ~Groups();

 private:
  Group& add(int size, std::unique_ptr<Policy> policy);

  std::string policy_;
  base::SpinLock lock_;                               // guards free_ and additions
  Group* free_ = nullptr;
  std::atomic<std::size_t> count_{0};
  const std::unique_ptr<std::atomic<Group*>[]> groups_{new std::atomic<Group*>[groups_max]{}};
};

}  // namespace imbrex::sched
