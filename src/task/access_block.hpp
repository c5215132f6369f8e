// SPDX-License-Identifier: BSD-3-Clause
// The accesses of one task, in the memory behind its descriptor: the name of each access, the edges
// to predecessors, and the common marks. For lineage, and for access/, which links the accesses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/waist.hpp"
#include "task/descriptor.hpp"
#include "task/trail.hpp"

namespace imbrex::task {

using detail::AccessKind;
using detail::AccessSpec;

// Excludes neighbours of a mutexinoutset from each other. A task takes it when its pending count is
// zero, in the order of addresses, and keeps it while it is suspended. It goes to waiting tasks in
// their order.
struct Mutex {
  base::SpinLock lock;
  Task* owner IMBREX_GUARDED_BY(lock) = nullptr;
  struct Access* first IMBREX_GUARDED_BY(lock) = nullptr;  // waiting, linked by Access::edge.next
  struct Access* last IMBREX_GUARDED_BY(lock) = nullptr;
  std::atomic<std::uint32_t> references{1};
  std::uint32_t version = 0;        // shared by all neighbours
  std::atomic<std::uint32_t> overwritten{0};  // as for an Access
};

// When an access ends. Changed only under the lock of Releases.
enum class End : std::uint8_t {
  with_task,  // once the task's event fires
  early,      // ended before the task
  by_event,   // ends when another event fires, whatever becomes of the task
  late        // ended after the task
};

// One access of one task. The edge is linked into the event of a predecessor, later into a mutex.
struct Access {
  Waiter edge;
  const void* address = nullptr;    // AccessKind::after: a Completion, with a reference
  Access* next = nullptr;           // link in a list of a Location
  std::uintptr_t mutex_or_version = 0;  // a version in the lower half, `overwritten` in the upper
                                        // half
  AccessKind kind = AccessKind::in;
  std::atomic<End> end{End::with_task};  // depend.hpp (3)
  std::uint16_t bytes = 1;          // as in AccessSpec
  std::uint32_t offset = 0;         // from its block, bytes

  // acquire: pairs with the stores in releases.cpp.
  [[nodiscard]] bool has_ended() const noexcept {
    const End now = end.load(std::memory_order_acquire);
    if (now == End::with_task) [[likely]] return edge.task->event.has_fired();
    return now != End::by_event;
  }

  // Null unless the access is a linked mutexinoutset.
  [[nodiscard]] Mutex* mutex() const noexcept {
    return kind == AccessKind::mutexinoutset ? reinterpret_cast<Mutex*>(mutex_or_version) : nullptr;
  }
  // The number of writes of the address when this task had written it, as its Location counts:
  // depend.hpp (5).
  [[nodiscard]] std::uint64_t version() const noexcept {
    if (kind != AccessKind::mutexinoutset) return static_cast<std::uint32_t>(word());
    return mutex() != nullptr ? mutex()->version : not_linked;
  }
  static constexpr std::uint32_t not_linked = UINT32_MAX;  // the same task has named the address
                                                           // before
  // The time at which another access took it out of the table; 0: never. Only among ranges:
  // depend.hpp (7).
  [[nodiscard]] std::uint32_t overwritten() const noexcept {
    if (kind != AccessKind::mutexinoutset) return static_cast<std::uint32_t>(word() >> 32);
    return mutex() != nullptr ? mutex()->overwritten.load(std::memory_order_relaxed) : 0;
  }
  // Only the creating code calls it. REQUIRES: the access has been linked.
  void overwrite(const std::uint32_t time) noexcept {
    if (kind == AccessKind::mutexinoutset) {
      mutex()->overwritten.store(time, std::memory_order_relaxed);
    } else {
      const std::uint64_t made = std::uint64_t{time} << 32 | version();
      std::atomic_ref(mutex_or_version).store(made, std::memory_order_relaxed);
    }
  }

 private:
  // The time and the version of an access without a mutex. Relaxed: an edge orders the value that
  // the reader needs, and a later value does not change the answer.
  [[nodiscard]] std::uint64_t word() const noexcept {
    return std::atomic_ref(const_cast<std::uintptr_t&>(mutex_or_version))
        .load(std::memory_order_relaxed);
  }
};

// A further edge of an access that follows several tasks.
struct ExtraEdge {
  Waiter edge;
  ExtraEdge* next;
};

// The part of a Node (cycle/node.hpp) that names its instance.
struct Instance {
  std::int64_t iteration = 0;  // of the one that runs, or comes next
  std::uint32_t offset = 0;    // of that iteration in a round
};

struct Rare;  // access/releases.hpp

struct alignas(base::cache_line_bytes) AccessBlock {  // the accesses follow it, each in its own
                                                      // cache line
  union {
    std::uint64_t last_linked = 0;  // creating code: id of the last task with an edge from this
                                    // task
    Instance* node;                 // of a task that repeats, which has no such edges
  };
  static constexpr std::uint32_t leaving = UINT32_MAX;
  // depend.hpp (1), (4)
  std::uint32_t places;             // creating code, from link() on; `leaving`: none
  std::uint32_t count = 0;
  std::uint32_t acquired = 0;       // mutexes held are among the first `acquired` accesses
  std::uint8_t marks = 0;           // flags, below; any thread sets `failed` and `apart`, by mark()
  static constexpr std::uint8_t mutexes = 1;
  static constexpr std::uint8_t futures = 2;  // AccessKind::after; released when the task starts
  static constexpr std::uint8_t failed = 4;  // the task has failed, or has inherited a failure
  static constexpr std::uint8_t ranges = 8;  // AccessKind::range_end
  static constexpr std::uint8_t repeats = 16;  // the task is a node; set before it first runs
  static constexpr std::uint8_t apart = 32;  // an access ends apart from the task; set by mark()
  bool after_failure = false;       // the task runs although a task that it depends on has failed
  std::uint32_t linked_at = 0;      // creating code: the time, or 0: linked by addresses
  ExtraEdge* extra = nullptr;       // owned
  std::atomic<std::uintptr_t> past{0};  // lineage.hpp
  std::atomic<Rare*> rare{nullptr};  // owned; null: neither inherited failures, nor `apart`
  Step step;                        // on a message's trail; only under a policy that measures
  [[nodiscard]] std::span<Access> accesses() noexcept {
    return {reinterpret_cast<Access*>(this + 1), count};
  }
  // Call it before the event fires, and before a pending count of the marked task is given back: a
  // thread that reads the marks plainly after either of the two sees it.
  void mark(const std::uint8_t what) noexcept {
    std::atomic_ref(marks).fetch_or(what, std::memory_order_relaxed);
  }
  // Atomic, since a task that has released an access may be failing.
  [[nodiscard]] bool has_mark(const std::uint8_t what) noexcept {
    return (std::atomic_ref(marks).load(std::memory_order_relaxed) & what) != 0;
  }
  [[nodiscard]] bool is_failed() noexcept { return has_mark(failed); }
  // It belongs to a node, and an instance has nothing to do for its accesses.
  [[nodiscard]] bool is_plain_node() noexcept {
    return (std::atomic_ref(marks).load(std::memory_order_relaxed) & ~ranges) == repeats;
  }
  [[nodiscard]] static constexpr std::size_t bytes(const std::size_t count) noexcept {
    return sizeof(AccessBlock) + count * sizeof(Access);
  }
};

static_assert(sizeof(Access) == base::cache_line_bytes);

// The block of an access, found without a read of the task, whose cache lines are mostly not near.
[[nodiscard]] inline AccessBlock& block_of(Access& access) noexcept {
  return *reinterpret_cast<AccessBlock*>(reinterpret_cast<std::byte*>(&access) - access.offset);
}

[[nodiscard]] inline std::size_t position_of(const Access& access) noexcept {
  return (access.offset - sizeof(AccessBlock)) / sizeof(Access);
}

// Whether an access of this kind names memory: the kinds from `in` to `inoutset` do.
[[nodiscard]] constexpr bool names_memory(const AccessKind kind) noexcept {
  return kind <= AccessKind::inoutset;
}
// Whether an access of this kind orders siblings: an entry that only says where an object ends, or
// names a future, does not.
[[nodiscard]] constexpr bool orders_siblings(const AccessKind kind) noexcept {
  return names_memory(kind) || kind == AccessKind::everything;
}
}  // namespace imbrex::task
