// SPDX-License-Identifier: BSD-3-Clause
// Dependencies among the children of one task, by address, with OpenMP's semantics. Knows no queue:
// what became ready is handed back.
//
// Each address has a Location: the last set of writers (one task, or neighbours of a set kind), the
// readers since, and for a set what came before it. A new access gets an edge from each task that
// it must follow; an edge is a Waiter at that task's event. An access to everything follows all in
// the table, takes them out, and is followed by all that come later.
//
// From the first range that a child names until clear(), accesses conflict where the memory that
// they name overlaps: the Locations lie in a tree of intervals, one for each interval that was
// named, and a new access follows what it conflicts with in all that it overlaps. What it covers
// and writes over is taken out, as from its own. Before that, and without a range, no size is read.
//
// Thread safety: a DependTable is used by the code of its parent task only, hence without a lock.
// Tasks in it end at any time on any thread: an edge counts only if event::add accepted it.
// Invariants:
//   (1) a task in the table has one reference for all its places there, counted in
//       AccessBlock::places by the creating code.
//   (2) memory is bounded by the live tasks: complete ones leave when a list or the table has
//       doubled since it was last swept; so the cost of sweeping is constant for each access.
//   (3) accesses that end apart from their task: before the first does, those who wait go from the
//       task's event to its Releases, which marks the event as swept; who adds an edge adds it, and
//       if the event was swept before, brings it there too. Both change the one word of the event,
//       so one of the two sees the other.
//   (4) where the last place of a task is lost to a task that follows it, its reference goes along
//       with the edge to whoever completes it (event::add_and_leave). Such a task may be gone as
//       soon as the edge is added.
//   (5) a Location counts how often its address has been written, a set as one writing; an access
//       knows the count with its own. So of any two that are linked it can be told whether one read
//       what the other wrote, wherever the table has got to since.
//   (6) one who has fired stays in the table if somebody may inherit its failure there, or while an
//       event holds its access.
//   (7) where ranges are in use, each task that is linked has a time of its own, and an access
//       knows when it was taken out: so of any two it can be told whether one found the other.
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
  // Tells `lineage`, if any, of each task that it links.
  explicit DependTable(Lineage* lineage) noexcept;
  DependTable() noexcept : DependTable(nullptr) {}
  ~DependTable();
  DependTable(const DependTable&) = delete;
  DependTable& operator=(const DependTable&) = delete;

  // Makes room for the accesses of `task`. Throws std::bad_alloc; then nothing has changed.
  void reserve(const Task& task, Outcome& outcome) {
    if (task.accesses->count > room_) [[unlikely]] resize(task.accesses->count, outcome);
  }
  // Adds the edges of `task`, which nobody else knows yet, and sets its pending count to their
  // number. True if there are none: the task is ready. REQUIRES: reserve(). What it allocates
  // itself is small and comes from slabs, but for mutexes and what ranges need; if even that fails
  // the program ends, since a task that is half linked could neither run nor be taken back.
  [[nodiscard]] bool link(Task& task, base::SlabCache& edges, Outcome& outcome) noexcept;

  // Takes all tasks out: the parent's life has ended, or nobody will spawn any more.
  void clear(Outcome& outcome) noexcept;
  // All children are complete: takes out those whose failure nobody can inherit.
  void forget_complete(Outcome& outcome) noexcept;
  // All tasks of `scope` are complete, and the parent has been told what failed there.
  void forget_failures(const Scope& scope, Outcome& outcome) noexcept;
  // To be called, by any thread, before a child's failure can be inherited, or before a child may
  // end while an access of it is open. From now on such a child stays, though it has fired.
  void keep_fired() noexcept { keeps_fired_.store(true, std::memory_order_relaxed); }

 private:
  struct alignas(base::cache_line_bytes) Location {
    const void* address = nullptr;  // null: not used
    Access* set = nullptr;          // the last writers: one task, or neighbours of a set kind
    Access* readers = nullptr;      // since `set`
    Access* before = nullptr;       // what each member of a set follows
    Mutex* mutex = nullptr;         // of a mutexinoutset
    std::uint64_t last_task = 0;    // id of the last task that named the address
    AccessKind set_kind = AccessKind::out;  // `in`: others may not join `set` any more
    std::uint32_t listed = 0;       // in `set` and `readers`
    std::uint32_t sweep_at = 16;    // (2)
    std::uint32_t version = 0;      // (5)
  };
  static_assert(sizeof(Location) == base::cache_line_bytes);
  template <bool told>
  struct Link;  // one call of link(); told: there is a lineage
  template <bool told>
  [[nodiscard]] bool link_as(Task& task, base::SlabCache& edges, Outcome& outcome) noexcept;
  struct Ranged;
  struct Ranges;  // what there is instead of `locations_` once a range has been named
  // Never inlined: it would cost those without ranges their registers.
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
  // room: places that must be free after
  [[gnu::noinline]] void resize(std::size_t room, Outcome& outcome);
  void sweep(Location& location, Outcome& outcome) noexcept;
  // `swept` gets the accesses that are taken out; each keeps its place until it is given up there.
  [[gnu::noinline]] void sweep(Location& location, Access*& swept) noexcept;
  void sweep_list(Access*& list, bool keeps_one, Location& location, Access*& swept) noexcept;
  static void remove_all(Access*& list, Outcome& outcome) noexcept;
  static void remove_scope(Location& location, const Scope& scope, Outcome& outcome) noexcept;

  std::unique_ptr<Location[]> locations_;
  Access* everything_ = nullptr;  // the last AccessKind::everything; a list of one
  std::size_t capacity_ = 0;  // a power of two
  std::size_t room_ = 0;      // for so many addresses more: half of the places at most are used
  unsigned shift_ = 64;
  std::uint8_t unusual_ = 0;  // AccessBlock::ranges, and below: what link() must look at
  static constexpr std::uint8_t everything = 16;  // `everything_` is not null, or has been
  Lineage* lineage_;
  std::vector<Found> more_found_;  // of the task that is being linked: kept for its memory
  std::unique_ptr<Ranges> ranges_;
  std::atomic<bool> keeps_fired_{false};  // (6); relaxed: asked after the task's event
};

}  // namespace imbrex::task
