// SPDX-License-Identifier: BSD-3-Clause
#include "task/depend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <utility>

#include "base/few_addresses.hpp"
#include "imbrex/error.hpp"
#include "task/lineage.hpp"

namespace imbrex::task {

namespace {

const char* kind_name(const AccessKind kind) noexcept {
  static constexpr const char* names[] = {"in",            "out",      "inout",
                                          "mutexinoutset", "inoutset", "after", "everything"};
  return names[static_cast<std::size_t>(kind)];
}

[[nodiscard]] bool is_set(const AccessKind kind) noexcept {
  return kind == AccessKind::mutexinoutset || kind == AccessKind::inoutset;
}

// Whether two accesses to one address must keep their order.
[[nodiscard]] bool conflict(const AccessKind first, const AccessKind second) noexcept {
  return first != second || !(first == AccessKind::in || is_set(first));
}

// Whether `next` must still wait for an access of `task` that has not ended.
[[nodiscard]] bool blocks(Task& task, Task& next) noexcept {
  for (const Access& mine : task.accesses->accesses()) {
    if (mine.kind == AccessKind::after || mine.released.load(std::memory_order_acquire)) continue;
    for (const Access& other : next.accesses->accesses()) {
      if (other.kind == AccessKind::after) continue;
      if (other.kind == AccessKind::everything || mine.kind == AccessKind::everything) return true;
      if (other.address == mine.address && conflict(mine.kind, other.kind)) return true;
    }
  }
  return false;
}

[[noreturn, gnu::cold, gnu::noinline]] void throw_two_kinds(const char* const name,
                                                            const AccessSpec& first,
                                                            const AccessSpec& second) {
  throw Error(fmt::format(
      "imbrex: task \"{}\" names {} as {} and as {}: give each object once, inout if it is both "
      "read and written",
      name, first.address, kind_name(first.kind), kind_name(second.kind)));
}

// Lets go those tasks that waited only for accesses that have ended early.
void sweep_waiters(Task& task, Outcome& outcome) noexcept {
  event::filter(task.event, outcome, [&task](Waiter& waiter) {
    if (!waiter.by_address() || blocks(task, *waiter.task)) return false;
    if (task.reach == Reach::flow) forget_edge(waiter);
    return true;
  });
}

void drop_mutex(Mutex* const mutex) noexcept {
  if (mutex->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete mutex;
}

[[gnu::noinline]] void drop_mutexes(AccessBlock& block) noexcept {
  for (const Access& access : block.accesses()) {
    if (access.mutex != nullptr) drop_mutex(access.mutex);
  }
}

// True if `access` has its mutex now; else it waits in the mutex's queue.
[[nodiscard]] bool acquire(Mutex& mutex, Access& access) noexcept {
  const std::lock_guard guard(mutex.lock);
  if (mutex.owner == nullptr) {
    mutex.owner = access.edge.task;
    return true;
  }
  access.edge.next = nullptr;
  if (mutex.first == nullptr) {
    mutex.first = &access;
  } else {
    mutex.last->edge.next = &access.edge;
  }
  mutex.last = &access;
  return false;
}

// The access of `edge`, its first member.
[[nodiscard]] Access* access_of(Waiter* const edge) noexcept {
  return reinterpret_cast<Access*>(edge);
}
static_assert(offsetof(Access, edge) == 0);

void give_back(Access& access, ReadyList& ready) noexcept {
  Mutex& mutex = *access.mutex;
  Access* next;
  {
    const std::lock_guard guard(mutex.lock);
    next = mutex.first;
    mutex.owner = next == nullptr ? nullptr : next->edge.task;
    if (next != nullptr) mutex.first = access_of(next->edge.next);
  }
  if (next == nullptr) return;
  ++next->edge.task->accesses->acquired;
  make_ready_with_mutexes(*next->edge.task, ready);
}

// Takes an access out of the table; (1).
void leave_table(Access& access, Outcome& outcome) noexcept {
  if (--block_of(access).places == 0) lose(*access.edge.task, outcome);
}

}  // namespace

bool needs_mutexes(const Task& task) noexcept { return task.accesses->has_mutexes; }

void make_ready_with_mutexes(Task& task, ReadyList& ready) noexcept {
  AccessBlock& block = *task.accesses;
  while (block.acquired < block.count) {
    Access& access = block.accesses()[block.acquired];
    // Once queued, the access may be handed the mutex, and the task go on, in another thread.
    if (access.mutex != nullptr && !acquire(*access.mutex, access)) return;
    ++block.acquired;
  }
  ready.push(task);
}

void give_back_all(Task& task, ReadyList& ready) noexcept {
  AccessBlock& block = *task.accesses;
  for (Access& access : block.accesses()) {
    if (access.mutex != nullptr && !access.released.load(std::memory_order_relaxed)) {
      give_back(access, ready);
    }
  }
}

namespace {

[[nodiscard]] inline bool surely_distinct(const std::span<const AccessSpec> specs) noexcept {
  base::FewAddresses addresses;
  for (const AccessSpec& spec : specs) {
    if (!addresses.add(spec.address)) return false;
  }
  return true;
}

}  // namespace

void check_accesses(const char* const name, const std::span<const AccessSpec> specs) {
  if (surely_distinct(specs)) return;
  for (std::size_t second = 1; second < specs.size(); ++second) {
    const void* const address = specs[second].address;
    for (std::size_t first = 0; first < second; ++first) {
      if (specs[first].address == address && specs[first].kind != specs[second].kind) [[unlikely]] {
        throw_two_kinds(name, specs[first], specs[second]);
      }
    }
  }
}

void build_accesses(Task& task, void* const memory,
                    const std::span<const AccessSpec> specs) noexcept {
  auto* const block = ::new (memory) AccessBlock;
  block->count = static_cast<std::uint32_t>(specs.size());
  Access* access = reinterpret_cast<Access*>(block + 1);
  std::uint32_t offset = sizeof(AccessBlock);
  for (const AccessSpec& spec : specs) {
    ::new (access) Access;
    access->offset = offset;
    offset += sizeof(Access);
    access->edge.task = &task;
    access->address = spec.address;
    access->kind = spec.kind;
    if (spec.kind == AccessKind::mutexinoutset) block->has_mutexes = true;
    if (spec.kind == AccessKind::after) {
      block->has_past = true;
      add_reference(*static_cast<detail::Completion*>(const_cast<void*>(spec.address)));
    }
    ++access;
  }
  task.accesses = block;
  if (!block->has_mutexes) return;
  // Mutexes are taken in this order: that of addresses, so that no cycle can form. By insertion,
  // since an Access cannot be moved.
  const std::span<Access> all = block->accesses();
  for (std::size_t end = 1; end < all.size(); ++end) {
    for (std::size_t at = end; at > 0 && all[at].address < all[at - 1].address; --at) {
      std::swap(all[at].address, all[at - 1].address);
      std::swap(all[at].kind, all[at - 1].kind);
    }
  }
}

void destroy_accesses(Task& task, base::SlabCache& edges) noexcept {
  AccessBlock& block = *task.accesses;
  for (ExtraEdge* edge = block.extra; edge != nullptr;) {
    ExtraEdge* const next = edge->next;
    edges.give(edge, base::slab_class(sizeof(ExtraEdge)));
    edge = next;
  }
  block.extra = nullptr;
  if (block.has_mutexes) [[unlikely]] drop_mutexes(block);
}

bool release_access(Task& task, const void* const address, Outcome& outcome) noexcept {
  if (task.accesses == nullptr) return false;
  bool found = false;
  for (Access& access : task.accesses->accesses()) {
    if (access.address != address || access.kind == AccessKind::after) continue;
    found = true;
    if (access.released.load(std::memory_order_relaxed)) continue;
    access.released.store(true, std::memory_order_release);
    if (access.mutex != nullptr) give_back(access, outcome.ready);
  }
  if (!found) return false;
  sweep_waiters(task, outcome);
  return true;
}

// ---- the table -------------------------------------------------------------------------------

// Edges are found first and added then, when their number stands in the task's pending count: an
// added one may be released at once, but the count of those that follow keeps the task back. What
// is found must live until it is added: so accesses that leave the table keep their place until
// the end.
//
// Twice, since a call in the middle would cost tasks that have no lineage their registers.
template <bool told>
struct DependTable::Link {
  Link(Task& its_task, base::SlabCache& its_edges, Lineage* its_lineage,
       Outcome& its_outcome) noexcept
      : task(its_task), edges(its_edges), lineage(its_lineage), outcome(its_outcome) {}

  Task& task;
  base::SlabCache& edges;
  Lineage* const lineage;  // null unless `told`
  Outcome& outcome;
  int found = 0;          // in `waiters` and `after`, not yet added
  int added = 0;          // earlier, for want of room; then `unlinked` guards the pending count
  bool guarded = false;
  Access* left = nullptr;  // of tasks that have left the table, but for one place
  std::array<Waiter*, 16> waiters;  // the first `found`
  std::array<detail::Completion*, 16> after;

  // `access` must follow all of `list`.
  void follow_all(Access& access, Access* list) {
    for (; list != nullptr; list = list->next) follow(access, *list);
  }

  void follow(Access& access, Access& earlier) {
    AccessBlock& block = block_of(earlier);
    Task& predecessor = *earlier.edge.task;
    if (block.last_linked == task.id || earlier.released.load(std::memory_order_acquire)) return;
    if (predecessor.event.has_fired()) return;
    block.last_linked = task.id;
    find(free_edge(access, predecessor), predecessor);
  }

  void find(Waiter& waiter, detail::Completion& completion) {
    if (found == static_cast<int>(waiters.size())) [[unlikely]] {
      if (!guarded) task.pending.store(unlinked, std::memory_order_relaxed);
      guarded = true;
      added += add_found();
      found = 0;
    }
    waiters[found] = &waiter;
    after[found] = &completion;
    ++found;
  }

  // How many of the found were accepted; the others have nothing to wait for.
  [[nodiscard]] int add_found() noexcept {
    if constexpr (told) tell();
    int accepted = 0;
    for (int i = 0; i < found; ++i) {
      detail::Completion& earlier = *after[i];
      const bool added_one = waiters[i]->by_address()
                                 ? add_edge(static_cast<Task&>(earlier), *waiters[i])
                                 : event::add(earlier.event, *waiters[i]);
      // Who is followed may be gone by now.
      if (told && !added_one) waiters[i]->follows.store(0, std::memory_order_relaxed);
      accepted += added_one ? 1 : 0;
    }
    return accepted;
  }

  // Before the edges are added, while nobody can begin the task nor the found be gone.
  void tell() {
    for (int i = 0; i < found; ++i) lineage->precede(*after[i], *waiters[i], outcome);
  }

  [[nodiscard]] bool add_edge(Task& predecessor, Waiter& waiter) noexcept {
    const bool leaving = predecessor.accesses->places == AccessBlock::leaving;
    event::Added result;
    if (leaving) {
      result = event::add_and_leave(predecessor.event, waiter);
      if (result == event::Added::and_left) return true;  // (4)
    } else {
      result = event::add(predecessor.event, waiter) ? event::Added::yes : event::Added::no;
    }
    if (event::was_swept(predecessor.event)) [[unlikely]] sweep_waiters(predecessor, outcome);
    if (leaving) lose(predecessor, outcome);
    return result == event::Added::yes;
  }

  // True if the task has nothing to wait for.
  [[nodiscard]] bool close() noexcept {
    int excess = found;
    if (guarded) {
      excess = unlinked - added - add_found();
    } else {
      task.pending.store(found, std::memory_order_relaxed);  // published with the edges
      excess -= add_found();
      if (excess == 0) return found == 0;
    }
    return task.pending.fetch_sub(excess, std::memory_order_acq_rel) == excess;
  }

  // The access's own, or a further one, for `predecessor`.
  [[nodiscard]] Waiter& free_edge(Access& access, Task& predecessor) {
    Waiter* edge = &access.edge;
    if (edge->by_address()) {
      auto* const extra =
          ::new (edges.take(base::slab_class(sizeof(ExtraEdge)))) ExtraEdge{{}, nullptr};
      extra->next = task.accesses->extra;
      task.accesses->extra = extra;
      edge = &extra->edge;
      edge->task = &task;
    }
    edge->follows.store(reinterpret_cast<std::uintptr_t>(&predecessor), std::memory_order_relaxed);
    return *edge;
  }

  static void enter(Access& access, Access*& list) noexcept {
    access.next = list;
    list = &access;
    ++block_of(access).places;
  }

  void read(Access& access, Location& location) {
    follow_all(access, location.set);
    enter(access, location.readers);
  }

  void take_out_first(Access*& list) noexcept {
    Access& access = *list;
    AccessBlock& block = block_of(access);
    list = access.next;
    if (block.places > 1) {
      --block.places;
    } else if (block.last_linked == task.id && !guarded) {  // its edge is found and not added
      block.places = AccessBlock::leaving;
    } else {
      access.next = left;
      left = &access;
    }
  }
  void take_out(Access*& list) noexcept {
    while (list != nullptr) take_out_first(list);
  }
  // follow_all() and take_out() in one.
  void take_out_followed(Access& access, Access*& list) {
    while (list != nullptr) {
      follow(access, *list);
      take_out_first(list);
    }
  }

  // Takes all tasks out of the location; the access follows them.
  void write_after(Access& access, Location& location) {
    if (location.readers != nullptr) {
      take_out_followed(access, location.readers);
      take_out(location.set);
    } else {
      take_out_followed(access, location.set);
    }
    take_out(location.before);
    location.listed = 0;
  }
  void write(Access& access, Location& location) {
    write_after(access, location);
    location.set_kind = access.kind;
    enter(access, location.set);
  }

  void write_everything(Access& access, const std::span<Location> locations, Access*& last) {
    for (Location& location : locations) write_after(access, location);
    take_out_followed(access, last);
    enter(access, last);
  }
  // The first access of a task that names some follows `last`.
  void follow_everything(AccessBlock& block, Access*& last) {
    if (last->edge.task->event.has_fired()) {
      remove_all(last, outcome);
      return;
    }
    for (Access& access : block.accesses()) {
      if (access.kind == AccessKind::after) continue;
      follow(access, *last);
      return;
    }
  }

  void join_set(Access& access, Location& location) {
    const bool joins = location.set != nullptr && location.set_kind == access.kind &&
                       location.readers == nullptr;
    if (!joins) {
      take_out(location.before);
      Access*& kept = location.readers != nullptr ? location.readers : location.set;
      location.before = kept;
      kept = nullptr;
      take_out(location.readers);
      take_out(location.set);
      location.set_kind = access.kind;
      location.listed = 0;
      if (location.mutex != nullptr) drop_mutex(location.mutex);
      location.mutex = access.kind == AccessKind::mutexinoutset ? new Mutex : nullptr;
    }
    follow_all(access, location.before);
    if (location.mutex != nullptr) {
      access.mutex = location.mutex;
      location.mutex->references.fetch_add(1, std::memory_order_relaxed);
    }
    enter(access, location.set);
  }
};

DependTable::~DependTable() {
  for (std::size_t index = 0; index < capacity_; ++index) {
    if (locations_[index].mutex != nullptr) drop_mutex(locations_[index].mutex);
  }
}

bool DependTable::link(Task& task, base::SlabCache& edges, Outcome& outcome) {
  if (lineage_ == nullptr) [[likely]] return link_as<false>(task, edges, outcome);
  lineage_->mark(task);
  return link_as<true>(task, edges, outcome);
}

template <bool told>
bool DependTable::link_as(Task& task, base::SlabCache& edges, Outcome& outcome) {
  Link<told> link(task, edges, lineage_, outcome);
  AccessBlock& block = *task.accesses;
  if ((used_ + block.count) * 2 > capacity_) resize(block.count, outcome);
  block.places = 1;  // ours, until all are entered
  // Nobody else knows the task yet.
  task.references.store(task.references.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  if (everything_ != nullptr) [[unlikely]] link.follow_everything(block, everything_);
  for (Access& access : block.accesses()) {
    if (access.kind == AccessKind::everything) [[unlikely]] {
      link.write_everything(access, {locations_.get(), capacity_}, everything_);
      continue;
    }
    if (access.kind == AccessKind::after) {
      link.find(access.edge, *static_cast<detail::Completion*>(const_cast<void*>(access.address)));
      continue;
    }
    Location& location = locate(access.address);
    if (location.last_task == task.id) continue;  // the same again
    location.last_task = task.id;
    if (location.listed >= location.sweep_at) [[unlikely]] sweep(location, outcome);
    if (is_set(access.kind)) {
      link.join_set(access, location);
    } else if (access.kind == AccessKind::in) {
      link.read(access, location);
    } else {
      link.write(access, location);
    }
    ++location.listed;
  }
  const bool ready = link.close();
  if constexpr (told) lineage_->remember(task, outcome);
  remove_all(link.left, outcome);
  if (--block.places == 0) lose(task, outcome);
  return ready;
}

DependTable::Location& DependTable::locate(const void* const address) {
  const auto key = reinterpret_cast<std::uintptr_t>(address);
  std::size_t index = (key * 0x9E3779B97F4A7C15u) >> shift_;  // Fibonacci hashing
  while (locations_[index].address != address) {
    if (locations_[index].address == nullptr) {
      locations_[index].address = address;
      ++used_;
      break;
    }
    index = (index + 1) & (capacity_ - 1);
  }
  return locations_[index];
}

void DependTable::resize(const std::size_t room, Outcome& outcome) {
  std::unique_ptr<Location[]> const old = std::move(locations_);
  const std::size_t old_capacity = capacity_;
  std::size_t live = 0;
  for (std::size_t index = 0; index < old_capacity; ++index) {
    Location& location = old[index];
    if (location.address == nullptr) continue;
    sweep(location, outcome);
    if (location.set == nullptr && location.readers == nullptr && location.before == nullptr) {
      if (location.mutex != nullptr) drop_mutex(location.mutex);
      location.address = nullptr;
    } else {
      ++live;
    }
  }
  // Half full at most after as many insertions again, whatever one task names.
  capacity_ = std::bit_ceil((live + room) * 4 + 64);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(capacity_));
  locations_ = std::make_unique<Location[]>(capacity_);
  used_ = 0;
  for (std::size_t index = 0; index < old_capacity; ++index) {
    if (old[index].address == nullptr) continue;
    Location& location = locate(old[index].address);
    location = old[index];
    old[index].mutex = nullptr;
  }
}

void DependTable::sweep(Location& location, Outcome& outcome) noexcept {
  location.listed = 0;
  const auto prune = [&](Access*& list) {
    for (Access** link = &list; *link != nullptr;) {
      Access& access = **link;
      if (access.edge.task->event.has_fired()) {
        *link = access.next;
        leave_table(access, outcome);
      } else {
        link = &access.next;
        ++location.listed;
      }
    }
  };
  prune(location.set);
  prune(location.readers);
  prune(location.before);
  location.sweep_at = std::max<std::uint32_t>(16, location.listed * 2);
}

void DependTable::remove_all(Access*& list, Outcome& outcome) noexcept {
  while (list != nullptr) {
    Access& access = *list;
    list = access.next;
    leave_table(access, outcome);
  }
}

void DependTable::clear(Outcome& outcome) noexcept {
  for (std::size_t index = 0; index < capacity_; ++index) {
    Location& location = locations_[index];
    remove_all(location.set, outcome);
    remove_all(location.readers, outcome);
    remove_all(location.before, outcome);
    if (location.mutex != nullptr) drop_mutex(location.mutex);
  }
  remove_all(everything_, outcome);
  locations_.reset();
  capacity_ = used_ = 0;
}

}  // namespace imbrex::task
