// SPDX-License-Identifier: BSD-3-Clause
// Dependencies among the children of one task, by address, with OpenMP's semantics. Knows no queue:
// what became ready is handed back.
//
// Each address has a Location: the last set of writers (one task, or neighbours of a set kind), the
// readers since, and for a set what came before it. A new access gets an edge from each task that
// it must follow; an edge is a Waiter at that task's event. An access to everything follows all in
// the table, takes them out, and is followed by all that come later.
//
// Thread safety: a DependTable is used by the code of its parent task only, hence without a lock.
// Tasks in it end at any time on any thread: an edge counts only if event::add accepted it.
// Invariants:
//   (1) a task in the table has one reference for all its places there, counted in
//       AccessBlock::places by the creating code.
//   (2) memory is bounded by the live tasks: complete ones leave when a list or the table has
//       doubled since it was last swept; so the cost of sweeping is constant for each access.
//   (3) early release: who releases sets `released`, then sweeps the waiters, which marks the event
//       as swept; who adds an edge adds it, and if the event was swept before, sweeps too. Both
//       change the one word of the event, so one of the two sees the other.
//   (4) where the last place of a task is lost to a task that follows it, its reference goes along
//       with the edge to whoever completes it (event::add_and_leave). Such a task may be gone as
//       soon as the edge is added.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/slab.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/waist.hpp"
#include "task/task.hpp"
#include "task/trail.hpp"

namespace imbrex::task {

using detail::AccessKind;
using detail::AccessSpec;

// Excludes neighbours of a mutexinoutset from each other. Taken in the order of addresses when a
// task's count is zero, kept while it is suspended, handed over in the order of asking.
struct Mutex {
  base::SpinLock lock;              // guards the next three
  Task* owner = nullptr;
  struct Access* first = nullptr;   // waiting, linked by Access::edge.next
  struct Access* last = nullptr;
  std::atomic<std::uint32_t> references{1};
};

// One access of one task. The edge is linked into the event of a predecessor, later into a mutex.
struct Access {
  Waiter edge;
  const void* address = nullptr;    // AccessKind::after: a Completion, with a reference
  Access* next = nullptr;           // link in a list of a Location
  Mutex* mutex = nullptr;           // mutexinoutset
  AccessKind kind = AccessKind::in;
  std::atomic<bool> released{false};  // ended early; (3)
  std::uint32_t offset = 0;         // from its block, bytes
};

// A further edge of an access that follows several tasks.
struct ExtraEdge {
  Waiter edge;
  ExtraEdge* next;
};

struct alignas(base::cache_line_bytes) AccessBlock {  // Accesses follow it, each in its own line
  std::uint64_t last_linked = 0;    // creating code: id of the last task with an edge from here
  static constexpr std::uint32_t leaving = UINT32_MAX;
  std::uint32_t places = 0;         // creating code: (1); `leaving`: none, (4)
  std::uint32_t count = 0;
  std::uint32_t acquired = 0;       // mutexes held are among the first `acquired` accesses
  bool has_mutexes = false;
  bool has_past = false;            // AccessKind::after; let go when the task starts
  ExtraEdge* extra = nullptr;       // owned
  std::atomic<std::uintptr_t> past{0};  // lineage.hpp
  Step step;                        // on a message's trail; only under a policy that measures
  [[nodiscard]] std::span<Access> accesses() noexcept {
    return {reinterpret_cast<Access*>(this + 1), count};
  }
  [[nodiscard]] static constexpr std::size_t bytes(const std::size_t count) noexcept {
    return sizeof(AccessBlock) + count * sizeof(Access);
  }
};

static_assert(sizeof(Access) == base::cache_line_bytes);

// The block of an access: without a look at its task, whose lines are mostly in no near cache.
[[nodiscard]] inline AccessBlock& block_of(Access& access) noexcept {
  return *reinterpret_cast<AccessBlock*>(reinterpret_cast<std::byte*>(&access) - access.offset);
}

// Throws Error if one address is given with two kinds.
[[gnu::noinline]] void check_accesses(const char* name, std::span<const AccessSpec> specs);

// Builds the block of `task` in `memory`, of AccessBlock::bytes(specs.size()).
void build_accesses(Task& task, void* memory, std::span<const AccessSpec> specs) noexcept;

// Gives up what the block of a dead task owns, except its futures: release_futures() comes first.
void destroy_accesses(Task& task, base::SlabCache& edges) noexcept;

// `task` starts: what it waited for is past. Calls release(completion) for the reference of each.
template <class Release>
void release_futures(Task& task, Release release) noexcept {
  if (!task.accesses->has_past) return;
  task.accesses->has_past = false;
  for (const Access& access : task.accesses->accesses()) {
    if (access.kind != AccessKind::after) continue;
    release(*static_cast<detail::Completion*>(const_cast<void*>(access.address)));
  }
}

// `task` is complete: its mutexes go to the next.
[[gnu::noinline]] void give_back_all(Task& task, ReadyList& ready) noexcept;
inline void give_back_mutexes(Task& task, ReadyList& ready) noexcept {
  if (task.accesses->has_mutexes) [[unlikely]] give_back_all(task, ready);
}

// Ends the access of the running `task` to `address`. False if it declared none.
[[nodiscard]] bool release_access(Task& task, const void* address, Outcome& outcome) noexcept;

class Lineage;  // lineage.hpp

class DependTable {
 public:
  DependTable() = default;
  // Tells `lineage`, if any, of each task that it links.
  explicit DependTable(Lineage* lineage) noexcept : lineage_(lineage) {}
  ~DependTable();
  DependTable(const DependTable&) = delete;
  DependTable& operator=(const DependTable&) = delete;

  // Adds the edges of `task`, which nobody else knows yet, and sets its pending count to their
  // number. True if there are none: the task is ready.
  [[nodiscard]] bool link(Task& task, base::SlabCache& edges, Outcome& outcome);

  // Takes all tasks out: the parent's life has ended, or nobody will spawn any more.
  void clear(Outcome& outcome) noexcept;

 private:
  struct alignas(base::cache_line_bytes) Location {
    const void* address = nullptr;  // null: not used
    Access* set = nullptr;          // the last writers: one task, or neighbours of a set kind
    Access* readers = nullptr;      // since `set`
    Access* before = nullptr;       // what each member of a set follows
    Mutex* mutex = nullptr;         // of a mutexinoutset
    std::uint64_t last_task = 0;    // id of the last task that named the address
    AccessKind set_kind = AccessKind::out;
    std::uint32_t listed = 0;       // in `set` and `readers`
    std::uint32_t sweep_at = 16;    // (2)
  };
  template <bool told>
  struct Link;  // one call of link(); told: there is a lineage
  template <bool told>
  [[nodiscard]] bool link_as(Task& task, base::SlabCache& edges, Outcome& outcome);
  static constexpr int unlinked = 1 << 30;  // more than any number of edges

  [[nodiscard]] Location& locate(const void* address);
  // room: places that must be free after
  [[gnu::noinline]] void resize(std::size_t room, Outcome& outcome);
  [[gnu::noinline]] static void sweep(Location& location, Outcome& outcome) noexcept;
  static void remove_all(Access*& list, Outcome& outcome) noexcept;

  std::unique_ptr<Location[]> locations_;
  Access* everything_ = nullptr;  // the last AccessKind::everything; a list of one
  std::size_t capacity_ = 0;  // a power of two
  std::size_t used_ = 0;
  unsigned shift_ = 64;
  Lineage* lineage_ = nullptr;
};

}  // namespace imbrex::task
