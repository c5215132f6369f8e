// SPDX-License-Identifier: BSD-3-Clause
// Dependencies among the children of one task, by address, with OpenMP's semantics. Knows no queue:
// tasks that became ready are handed back.
//
// Each address has a Location: the last set of writers (one task, or neighbours of a set kind), the
// readers since, and for a set the accesses before it. A new access gets an edge from each task
// that it must follow; an edge is a Waiter at that task's event. An access to everything follows
// all tasks in the table, takes them out, and is followed by all later tasks.
//
// From the first range that a child names until clear(), accesses conflict where their memory
// overlaps. The Locations are then in a tree of intervals, one for each named interval, and a new
// access follows the conflicting accesses in all intervals that it overlaps. The accesses that it
// covers and overwrites are taken out, as from its own Location. Without ranges no size is read.
//
// Thread safety: only the code of the parent task uses a DependTable, hence without a lock. Tasks
// in it end at any time on any thread: an edge counts only if event::add accepted it.
// Invariants:
//   (1) a task in the table has one reference for all its places there; the creating code counts
//       them in AccessBlock::places.
//   (2) memory is bounded by the live tasks: complete ones leave when a list or the table has
//       doubled since it was last swept; so the cost of sweeping is constant for each access.
//   (3) accesses that end apart from their task: before the first one ends, its waiters move from
//       the task's event to its Releases, which marks the event as swept. A thread that adds an
//       edge to a swept event brings the edge to the Releases, too. Both change the one word of the
//       event, so one of the two sees the other.
//   (4) where the last place of a task is lost to a task that follows it, its reference goes along
//       with the edge to the thread that completes it (event::add_and_leave). Such a task may be
//       gone as soon as the edge is added.
//   (5) a Location counts how often its address has been written, a set as one write; an access
//       keeps the count of its time. For any two linked accesses it can therefore be told whether
//       one read what the other wrote, wherever the table has got to since.
//   (6) a fired access stays in the table if a later task may inherit its failure there, or while
//       an event keeps it open.
//   (7) where ranges are in use, each linked task has a time of its own, and an access keeps the
//       time when it was taken out. For any two accesses it can therefore be told whether one found
//       the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/slab.hpp"
#include "task/access_block.hpp"

namespace imbrex::task {

class Lineage;  // lineage.hpp

class DependTable {
 public:
  // `lineage`, which may be null, is told of each task that the table links.
  explicit DependTable(Lineage* lineage) noexcept;
  DependTable() noexcept : DependTable(nullptr) {}
  ~DependTable();
  DependTable(const DependTable&) = delete;
  DependTable& operator=(const DependTable&) = delete;

  // Makes room for the accesses of `task`. Throws std::bad_alloc, and has then changed nothing.
  void reserve(const Task& task, Outcome& outcome) {
    if (task.accesses->count > room_) [[unlikely]] resize(task.accesses->count, outcome);
  }
  // Accesses conflict where their memory overlaps from now on, as from the first range on.
  void use_ranges(Outcome& outcome) {
    if (ranges_ == nullptr) find_ranges(outcome);
  }
  // Adds the edges of `task`, which no other thread knows yet, and sets its pending count to their
  // number. True if there are none: the task is ready. REQUIRES: reserve(). Its own allocations are
  // small and come from slabs, except for mutexes and ranges. If such an allocation fails the
  // program ends, since a task that is half linked could neither run nor be taken back.
  [[nodiscard]] bool link(Task& task, base::SlabCache& edges, Outcome& outcome) noexcept;

  // Takes all tasks out: the parent's life has ended, or it will spawn no more.
  void clear(Outcome& outcome) noexcept;
  // All children are complete: takes out those whose failure no later task can inherit.
  void forget_complete(Outcome& outcome) noexcept;
  // All tasks of `scope` are complete, and it ends. Takes its tasks out if the parent has been told
  // of their failures. Otherwise the tasks that stay belong to the scope around from now on, since
  // the next scope may have the address of this one.
  void end_scope(const Scope& scope, bool told, Outcome& outcome) noexcept;
  // False while end_scope() has nothing to do, unless the parent has been told of a failure.
  [[nodiscard]] bool has_failures() const noexcept {
    return has_failures_.load(std::memory_order_relaxed);
  }
  // Call it, on any thread, before a child ends while an access of it is open. From now on such a
  // child stays, although it has fired, and so does a child that has failed.
  void keep_fired() noexcept { keeps_fired_.store(true, std::memory_order_relaxed); }
  // Call it, on any thread, before a child's failure can be inherited.
  void keep_failures() noexcept {
    has_failures_.store(true, std::memory_order_relaxed);
    keep_fired();
  }

 private:
  struct alignas(base::cache_line_bytes) Location {
    const void* address = nullptr;  // null: the place is free
    Access* set = nullptr;          // the last writers: one task, or neighbours of a set kind
    Access* readers = nullptr;      // readers since `set`
    Access* before = nullptr;       // accesses that each member of a set follows
    Mutex* mutex = nullptr;         // for a mutexinoutset
    std::uint64_t last_task = 0;    // id of the last task that named the address
    AccessKind set_kind = AccessKind::out;  // `in`: no access may join `set` any more
    std::uint32_t listed = 0;       // number of accesses in `set` and `readers`
    std::uint32_t sweep_at = 16;    // (2)
    std::uint32_t version = 0;      // (5)
  };
  static_assert(sizeof(Location) == base::cache_line_bytes);
  template <bool told>
  struct Link;  // one call of link(); told: there is a lineage
  template <bool told>
  [[nodiscard]] bool link_as(Task& task, base::SlabCache& edges, Outcome& outcome) noexcept;
  struct Ranged;
  struct Ranges;  // replaces `locations_` once a range has been named
  // Never inlined: it would cost tasks without ranges their registers.
  template <bool told>
  [[nodiscard, gnu::noinline]] bool link_by_range(Task& task, base::SlabCache& edges,
                                                  Outcome& outcome) noexcept;
  template <bool told>
  [[nodiscard]] bool end_linking(Link<told>& link) noexcept;
  template <bool told>
  void enter_ranges(Link<told>& link, AccessBlock& block, std::uint32_t time) noexcept;
  [[gnu::noinline]] void find_ranges(Outcome& outcome);
  // An edge that is found and not yet added.
  struct Found {
    Waiter* waiter;
    detail::Completion* after;
  };

  [[nodiscard]] Location& locate(const void* address);
  // Changes the size; `room` places are free afterwards.
  [[gnu::noinline]] void resize(std::size_t room, Outcome& outcome);
  void sweep(Location& location, Outcome& outcome) noexcept;
  // `swept` gets the accesses that are taken out; each keeps its place until the caller gives it
  // up.
  [[gnu::noinline]] void sweep(Location& location, Access*& swept) noexcept;
  void sweep_list(Access*& list, bool keeps_one, Location& location, Access*& swept) noexcept;
  static void remove_all(Access*& list, Outcome& outcome) noexcept;
  static void end_scope(Location& location, const Scope& scope, bool told,
                        Outcome& outcome) noexcept;

  std::unique_ptr<Location[]> locations_;
  Access* everything_ = nullptr;  // the last access of AccessKind::everything; a list of one
  std::size_t capacity_ = 0;  // a power of two
  std::size_t room_ = 0;      // number of further addresses: at most half of the places are used
  unsigned shift_ = 64;
  std::uint8_t unusual_ = 0;  // AccessBlock::ranges, and the flag below: link() checks it
  static constexpr std::uint8_t everything = 16;  // `everything_` is set, or has been
  Lineage* lineage_;
  std::vector<Found> more_found_;  // of the task that is being linked; kept for its memory
  std::unique_ptr<Ranges> ranges_;
  // (6); both relaxed: asked after the task's event
  std::atomic<bool> keeps_fired_{false};
  std::atomic<bool> has_failures_{false};  // then keeps_fired_, too
};

}  // namespace imbrex::task
