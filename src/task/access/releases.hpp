// SPDX-License-Identifier: BSD-3-Clause
// Releases: the waiters of each access of one task, from the first access on that ends apart from
// the task: early, by release(), or later than its body, by an event.
//
// A task that follows another by address waits at one event for all accesses that it conflicts
// with. Once these end one by one, each waiter is listed here under every open access that it
// conflicts with, together with their number. The end of an access costs one step for each waiter
// of that access; the release of all of n accesses by n readers costs n.
//
// Thread safety: any thread, except where a comment names the running task.
// Invariants, under the lock:
//   (1) a waiter that is listed here is in no event, and is listed under each open access that it
//       conflicts with, as often as `waiting_` says. No other code releases it.
//   (2) an access is open until it is released or its event fires; without an event, until the task
//       ends.
//   (3) a thread that adds an edge to the task's event after the first release finds the event
//       swept, and brings the edge here; after the task's end, when the event takes none, it comes
//       here, too.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "task/access/interval_tree.hpp"
#include "task/access_block.hpp"
#include "task/failure.hpp"

namespace imbrex::task {

class Releases {
 public:
  // REQUIRES: `task` runs, and has accesses.
  explicit Releases(Task& task);
  ~Releases();
  Releases(const Releases&) = delete;
  Releases& operator=(const Releases&) = delete;

  // The running task ends its accesses to the object at `address`, or with `bytes` to that range.
  // False if it declared none.
  [[nodiscard]] bool release(const void* address, std::size_t bytes, Outcome& outcome) noexcept;
  // The running task: these accesses end when `hold` does. False if the task declared none, or has
  // released them.
  [[nodiscard]] bool hold(const void* address, std::size_t bytes) noexcept;
  // One hold of these accesses has ended; `failure`, if not null, is the reason why they fail.
  void end_hold(const void* address, std::size_t bytes, Failure* failure,
                Outcome& outcome) noexcept;

  // Takes over the waiters by address of the task's event; releases those that no open access
  // keeps.
  void take_waiters(Outcome& outcome) noexcept;
  // The event has fired, and `first` are its waiters. Returns the waiters that are to be released
  // now.
  [[nodiscard]] Waiter* fire(Waiter* first) noexcept;
  // The event has fired. True if `waiter` waits here for an access that an event of its own ends.
  [[nodiscard]] bool add(Waiter& waiter) noexcept;

  // The failure of the event that ended `access`; null: none.
  [[nodiscard]] Failure* failure_of(const Access& access) const noexcept;
  void forget_failures() noexcept;

 private:
  struct Listed {
    std::uint32_t waiting;  // index
    std::uint32_t next;     // index + 1
  };
  struct Waiting {
    Waiter* waiter;
    std::uint32_t accesses;  // number of open accesses that keep it
  };

  template <class Visit>
  void each_at(const void* address, Visit visit) noexcept IMBREX_REQUIRES(lock_);
  template <class Visit>
  bool each_named(const void* address, std::size_t bytes, Visit visit) noexcept
      IMBREX_REQUIRES(lock_);
  [[nodiscard]] bool is_open(const Access& access) const noexcept IMBREX_REQUIRES(lock_);
  // Lists the waiter; false, and not listed, if no open access keeps it.
  [[nodiscard]] bool list(Waiter& waiter) noexcept IMBREX_REQUIRES(lock_);
  // Lists the last waiter of `waiting_` under the access.
  void list_under(std::uint32_t position) noexcept IMBREX_REQUIRES(lock_);
  void list_by_range(const Access& other) noexcept IMBREX_REQUIRES(lock_);
  // Lists the waiters of the event; `free` gets those that no access keeps.
  void list_all(Waiter* first, Waiter*& free) noexcept IMBREX_REQUIRES(lock_);
  // The access is not open any more; `free` gets the waiters that it alone kept.
  void end(std::uint32_t position, Waiter*& free) noexcept IMBREX_REQUIRES(lock_);
  void fail(std::uint32_t position, Failure& failure) noexcept IMBREX_REQUIRES(lock_);
  void let_go(Waiter* free, bool fired, Outcome& outcome) noexcept;

  Task& task_;
  base::SpinLock lock_;  // guards the ends of the task's accesses, too
  bool fired_ IMBREX_GUARDED_BY(lock_) = false;
  // Position + 1 of the last access there. The table by interval is made for the first waiter by
  // range.
  std::unordered_map<const void*, std::uint32_t> by_address_ IMBREX_GUARDED_BY(lock_);
  IntervalTree<std::uint32_t> by_interval_ IMBREX_GUARDED_BY(lock_);
  // For each position: the position before + 1.
  std::vector<std::uint32_t> same_address_ IMBREX_GUARDED_BY(lock_);
  std::vector<std::uint32_t> same_interval_ IMBREX_GUARDED_BY(lock_);
  // Positions of accesses to everything.
  std::vector<std::uint32_t> everything_ IMBREX_GUARDED_BY(lock_);
  // For each position: index + 1 in `listed_`.
  std::vector<std::uint32_t> first_listed_ IMBREX_GUARDED_BY(lock_);
  std::vector<Listed> listed_ IMBREX_GUARDED_BY(lock_);
  std::vector<Waiting> waiting_ IMBREX_GUARDED_BY(lock_);
  // Number of holds by position; empty: none yet.
  std::vector<std::uint16_t> holds_ IMBREX_GUARDED_BY(lock_);
  // For each position; made by the first hold that fails. Each is set once, before its access ends.
  std::atomic<std::atomic<Failure*>*> failures_{nullptr};
};

// The parts of an AccessBlock that few tasks need.
struct Rare {
  std::atomic<struct Inherited*> inherited{nullptr};  // inheritance.cpp
  std::atomic<Releases*> releases{nullptr};  // made by the running task, before the event is swept
  ~Rare();
};
// Made by the first caller that needs it.
[[nodiscard]] Rare& rare_of(AccessBlock& block) noexcept;
// Null if no access of `task` ends apart from it.
[[nodiscard]] Releases* releases_of(const AccessBlock& block) noexcept;

// The member functions of these names, for callers that seldom call them in the middle of a fast
// path. REQUIRES: the event was swept.
[[gnu::cold, gnu::noinline]] void take_waiters(Task& task, Outcome& outcome) noexcept;
[[nodiscard, gnu::cold, gnu::noinline]] Waiter* fire_apart(Task& task, Waiter* first) noexcept;

}  // namespace imbrex::task
