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

#include "base/guarded.hpp"
#include "base/slab.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "task/failure.hpp"
#include "task/access/interval_tree.hpp"
#include "task/task.hpp"
#include "task/trail.hpp"

namespace imbrex::task {

using detail::AccessKind;
using detail::AccessSpec;

// Excludes neighbours of a mutexinoutset from each other. Taken in the order of addresses when a
// task's count is zero, kept while it is suspended, handed over in the order of asking.
struct Mutex {
  base::SpinLock lock;
  Task* owner IMBREX_GUARDED_BY(lock) = nullptr;
  struct Access* first IMBREX_GUARDED_BY(lock) = nullptr;  // waiting, linked by Access::edge.next
  struct Access* last IMBREX_GUARDED_BY(lock) = nullptr;
  std::atomic<std::uint32_t> references{1};
  std::uint32_t version = 0;        // of all neighbours
  std::atomic<std::uint32_t> overwritten{0};  // as that of an Access
};

// When an access ends. Changed under the lock of Releases only.
enum class End : std::uint8_t {
  with_task,  // once the task's event fires
  early,      // it has, before
  by_event,   // once another event fires, whatever becomes of the task
  late        // it has, behind the task
};

// One access of one task. The edge is linked into the event of a predecessor, later into a mutex.
struct Access {
  Waiter edge;
  const void* address = nullptr;    // AccessKind::after: a Completion, with a reference
  Access* next = nullptr;           // link in a list of a Location
  std::uintptr_t mutex_or_version = 0;  // a version below, and above it `overwritten`
  AccessKind kind = AccessKind::in;
  std::atomic<End> end{End::with_task};  // (3)
  std::uint16_t bytes = 1;          // as in AccessSpec
  std::uint32_t offset = 0;         // from its block, bytes

  // acquire: pairs with the ends of releases.cpp.
  [[nodiscard]] bool has_ended() const noexcept {
    const End now = end.load(std::memory_order_acquire);
    if (now == End::with_task) [[likely]] return edge.task->event.has_fired();
    return now != End::by_event;
  }

  // Null unless it is a mutexinoutset that has been linked.
  [[nodiscard]] Mutex* mutex() const noexcept {
    return kind == AccessKind::mutexinoutset ? reinterpret_cast<Mutex*>(mutex_or_version) : nullptr;
  }
  // How often the address had been written when this task had, as its Location counts; (5).
  [[nodiscard]] std::uint64_t version() const noexcept {
    if (kind != AccessKind::mutexinoutset) return static_cast<std::uint32_t>(word());
    return mutex() != nullptr ? mutex()->version : not_linked;
  }
  static constexpr std::uint32_t not_linked = UINT32_MAX;  // named before by the same task
  // The time at which it was taken out of the table by another; 0: never. Only among ranges; (7).
  [[nodiscard]] std::uint32_t overwritten() const noexcept {
    if (kind != AccessKind::mutexinoutset) return static_cast<std::uint32_t>(word() >> 32);
    return mutex() != nullptr ? mutex()->overwritten.load(std::memory_order_relaxed) : 0;
  }
  // Creating code. REQUIRES: it has been linked.
  void overwrite(const std::uint32_t time) noexcept {
    if (kind == AccessKind::mutexinoutset) {
      mutex()->overwritten.store(time, std::memory_order_relaxed);
    } else {
      const std::uint64_t made = std::uint64_t{time} << 32 | version();
      std::atomic_ref(mutex_or_version).store(made, std::memory_order_relaxed);
    }
  }

 private:
  // The time and the version of an access that has no mutex. Relaxed: whoever asks for either has
  // the one that it needs from an edge, and a later one does not change the answer.
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

struct Rare;  // access/releases.hpp

struct alignas(base::cache_line_bytes) AccessBlock {  // Accesses follow it, each in its own line
  std::uint64_t last_linked = 0;    // creating code: id of the last task with an edge from here
  static constexpr std::uint32_t leaving = UINT32_MAX;
  std::uint32_t places;             // creating code, from link() on: (1); `leaving`: none, (4)
  std::uint32_t count = 0;
  std::uint32_t acquired = 0;       // mutexes held are among the first `acquired` accesses
  std::uint8_t marks = 0;           // below; `failed` and `apart` by any thread, by mark()
  static constexpr std::uint8_t mutexes = 1;
  static constexpr std::uint8_t futures = 2;  // AccessKind::after; let go when the task starts
  static constexpr std::uint8_t failed = 4;  // the task has, or it has inherited a failure
  static constexpr std::uint8_t ranges = 8;  // AccessKind::range_end
  static constexpr std::uint8_t apart = 32;  // an access ends apart from the task; by mark()
  bool after_failure = false;       // it runs although what it depends on has failed
  std::uint32_t linked_at = 0;      // creating code: the time, or 0: linked by addresses; (7)
  ExtraEdge* extra = nullptr;       // owned
  std::atomic<std::uintptr_t> past{0};  // lineage.hpp
  std::atomic<Rare*> rare{nullptr};  // owned; null: neither failures of others, nor `apart`
  Step step;                        // on a message's trail; only under a policy that measures
  [[nodiscard]] std::span<Access> accesses() noexcept {
    return {reinterpret_cast<Access*>(this + 1), count};
  }
  // To be called before the event fires, and before a count of the task that it marks is given
  // back: so whoever reads the marks plainly after either sees it.
  void mark(const std::uint8_t what) noexcept {
    std::atomic_ref(marks).fetch_or(what, std::memory_order_relaxed);
  }
  // Atomic, since a task that has released an access may be failing.
  [[nodiscard]] bool has_mark(const std::uint8_t what) noexcept {
    return (std::atomic_ref(marks).load(std::memory_order_relaxed) & what) != 0;
  }
  [[nodiscard]] bool is_failed() noexcept { return has_mark(failed); }
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
  if ((task.accesses->marks & AccessBlock::futures) == 0) return;
  task.accesses->marks &= static_cast<std::uint8_t>(~AccessBlock::futures);
  for (const Access& access : task.accesses->accesses()) {
    if (access.kind != AccessKind::after) continue;
    release(*static_cast<detail::Completion*>(const_cast<void*>(access.address)));
  }
}

// `task` is complete, its event has fired, and its waiters, from `first` on, are not let go yet:
// its mutexes go to the next, its failures to those who follow.
[[gnu::noinline]] void end_marked(Task& task, Waiter* first, ReadyList& ready) noexcept;
inline void end_accesses(Task& task, Waiter* const first, ReadyList& ready) noexcept {
  if (task.accesses->has_mark(AccessBlock::mutexes | AccessBlock::failed)) [[unlikely]] {
    end_marked(task, first, ready);
  }
}

// Whether `next` must still wait for an access of `task` that has not ended. REQUIRES: both
// declared some.
[[nodiscard]] bool blocks(Task& task, Task& next) noexcept;

// Adds those of the running `task` that plug_ins.hpp's open_accesses() says. REQUIRES: it declared
// some.
void list_open(Task& task, std::vector<detail::OpenAccess>& open);

// Whether an access of `task`, which is complete, is still open until its event fires. For reports:
// what it reads may be a moment old.
[[nodiscard]] bool holds_access(const Task& task) noexcept;

// The mutex of `access` goes to the next that waits for it.
void give_back(Access& access, ReadyList& ready) noexcept;

[[nodiscard]] inline std::size_t position_of(const Access& access) noexcept {
  return (access.offset - sizeof(AccessBlock)) / sizeof(Access);
}

// ---- failures along accesses: failure.cpp; docs/design/errors.md -------------------------------

// `task` fails, before its event fires. Takes over the reference.
void fail_task(Task& task, Failure& failure) noexcept;
// The failure that a task inherits whose access follows `access` through data; null: none.
// REQUIRES: the task of `access` has fired, or `access` has ended before.
[[nodiscard]] Failure* carried(const Access& access) noexcept;
[[nodiscard]] constexpr bool inherits(const AccessKind kind) noexcept {
  return kind <= AccessKind::inoutset && kind != AccessKind::out;
}
// The first cause of what `task` has inherited, by order of creation; null: nothing.
[[nodiscard]] Failure* inherited_by(Task& task) noexcept;
// `access` follows `earlier`, as for carried().
[[gnu::noinline]] void inherit(Access& access, const Access& earlier) noexcept;
// The same for all accesses of `next` that follow one of `task`, both linked. If `task` has not
// `fired`, for what it has released.
[[gnu::noinline]] void pass_on(Task& task, Task& next, bool fired) noexcept;
void forget_inherited(AccessBlock& block) noexcept;

// Ends the access of the running `task` to `address`, or with `bytes` to that range. False if it
// declared none.
[[nodiscard]] bool release_access(Task& task, const void* address, std::size_t bytes,
                                  Outcome& outcome) noexcept;

// Keeps the access of the running `task` to `address` open until end_hold(), as Releases has it;
// false if there is none.
[[nodiscard]] bool hold_access(Task& task, const void* address, std::size_t bytes,
                               Outcome& outcome) noexcept;

[[noreturn]] void throw_not_declared(const char* what, const Task& task, const void* address,
                                     std::size_t bytes);

// Whether an access of this kind names memory: the kinds from `in` to `inoutset` do.
[[nodiscard]] constexpr bool names_memory(const AccessKind kind) noexcept {
  return kind <= AccessKind::inoutset;
}
// Whether one of this kind keeps siblings in order: what only says where an object ends, or names a
// future, does not.
[[nodiscard]] constexpr bool orders_siblings(const AccessKind kind) noexcept {
  return names_memory(kind) || kind == AccessKind::everything;
}
// The memory that an access covers. REQUIRES: it names memory.
[[nodiscard]] inline Interval interval_of(const Access& access) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(access.address);
  if (access.bytes != 0) return {begin, begin + access.bytes};
  return {begin, reinterpret_cast<std::uintptr_t>((&access + 1)->address)};
}
[[nodiscard]] inline bool is_range(const Access& access) noexcept {
  return access.bytes == 0 && (&access + 1)->kind == AccessKind::range_end;
}

void drop_mutex(Mutex* mutex) noexcept;

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
