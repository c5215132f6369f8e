// SPDX-License-Identifier: BSD-3-Clause
#include "task/access/depend.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "task/access/conflicts.hpp"
#include "task/access/inheritance.hpp"
#include "task/access/interval_tree.hpp"
#include "task/access/mutexes.hpp"
#include "task/access/releases.hpp"
#include "task/lineage.hpp"
#include "task/scope_counts.hpp"

namespace imbrex::task {

namespace {

// Takes an access out of the table; invariant (1).
void leave_table(Access& access, Outcome& outcome) noexcept {
  if (--block_of(access).places == 0) lose(*access.edge.task, outcome);
}

// `predecessor` has ended. Returns true if an access of it is still open, for which `waiter` waits
// now.
[[gnu::cold, gnu::noinline, nodiscard]] bool follow_past(Task& predecessor,
                                                         Waiter& waiter) noexcept {
  Releases* const releases = releases_of(*predecessor.accesses);
  if (releases != nullptr && releases->add(waiter)) return true;
  if (predecessor.accesses->is_failed()) pass_on(predecessor, *waiter.task, true);
  return false;
}

}  // namespace

// ---- the table -------------------------------------------------------------------------------

// The Location of all accesses that name one interval, where ranges are in use; its `address` is
// unused.
struct DependTable::Ranged : Location {
  std::uint32_t entered = 0;  // the time of the last entry
};

// Edges are found first and added later, when their number is in the task's pending count: an added
// edge may be released at once, but the count of the other edges holds the task back. A found task
// must live until its edge is added, so accesses that leave the table keep their place until the
// end.
//
// Two variants, since a call in the middle would cost tasks without a lineage their registers.
template <bool told>
struct DependTable::Link {
  Link(Task& its_task, base::SlabCache& its_edges, DependTable& its_table,
       Outcome& its_outcome) noexcept
      : task(its_task), edges(its_edges), table(its_table), outcome(its_outcome) {}

  Task& task;
  base::SlabCache& edges;
  DependTable& table;
  Outcome& outcome;
  // Accesses that have left the table and own the last place of their task there. They keep it
  // until the end: an edge from such a task may be found and not yet added, and if the task has
  // fired meanwhile, this may be the last reference to it.
  Access* left = nullptr;
  std::array<Found, 16> first;  // found and not yet added, up to `found_end`; more of them are in
                                // table.more_found_
  Found* found_end = first.data();

  // `access` must follow all accesses of `list`.
  void follow_all(Access& access, Access* list) {
    for (; list != nullptr; list = list->next) follow(access, *list);
  }

  void follow(Access& access, Access& earlier) {
    AccessBlock& block = block_of(earlier);
    Task& predecessor = *earlier.edge.task;
    if (block.last_linked == task.id) return;
    if (earlier.has_ended()) {
      if (block.is_failed()) [[unlikely]] inherit(access, earlier);
      return;
    }
    block.last_linked = task.id;
    find(free_edge(access, predecessor), predecessor);
  }

  void find(Waiter& waiter, detail::Completion& completion) {
    if (found_end != first.data() + first.size()) [[likely]] {
      *found_end++ = {&waiter, &completion};
    } else {
      table.more_found_.push_back({&waiter, &completion});
    }
  }

  // Adds the found edges; returns how many of them need not wait.
  [[nodiscard]] int add_first() noexcept {
    int refused = 0;
    for (const Found* one = first.data(); one != found_end; ++one) refused += add(*one) ? 0 : 1;
    return refused;
  }
  [[nodiscard]] int add_more() noexcept {
    int refused = 0;
    for (const Found& one : table.more_found_) refused += add(one) ? 0 : 1;
    table.more_found_.clear();
    return refused;
  }

  // Returns false if the predecessor has ended.
  [[nodiscard]] bool add(const Found& one) noexcept {
    const bool accepted = one.waiter->by_address()
                              ? add_edge(static_cast<Task&>(*one.after), *one.waiter)
                              : event::add(one.after->event, *one.waiter);
    // The predecessor may be gone by now.
    if (told && !accepted) one.waiter->follows.store(0, std::memory_order_relaxed);
    return accepted;
  }

  // Tells the lineage of the found predecessors before the edges are added: until then no worker
  // can begin the task, and the predecessors exist.
  void tell() {
    for (const Found& one : std::span(first.data(), found_end)) tell_of(one);
    for (const Found& one : table.more_found_) tell_of(one);
  }
  void tell_of(const Found& one) { table.lineage_->precede(*one.after, *one.waiter, outcome);
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
    if (event::was_swept(predecessor.event)) [[unlikely]] take_waiters(predecessor, outcome);
    if (result == event::Added::no &&
        predecessor.accesses->has_mark(AccessBlock::failed | AccessBlock::apart)) [[unlikely]] {
      if (follow_past(predecessor, waiter)) result = event::Added::yes;
    }
    if (leaving) lose(predecessor, outcome);
    return result == event::Added::yes;
  }

  // Returns true if the task has no predecessor to wait for.
  [[nodiscard]] bool close() noexcept {
    if constexpr (told) tell();
    const auto count = static_cast<int>(found_end - first.data());
    if (count == static_cast<int>(first.size())) [[unlikely]] return close_many(count);
    task.pending.store(count, std::memory_order_relaxed);  // published with the edges
    const int refused = add_first();
    if (refused == 0) [[likely]] return count == 0;
    return give_back(refused);
  }
  [[gnu::noinline]] bool close_many(const int first_count) noexcept {
    const int count = first_count + static_cast<int>(table.more_found_.size());
    task.pending.store(count, std::memory_order_relaxed);
    const int refused = add_first() + add_more();
    return refused != 0 && give_back(refused);
  }
  [[nodiscard]] bool give_back(const int refused) noexcept {
    return task.pending.fetch_sub(refused, std::memory_order_acq_rel) == refused;
  }

  // Returns the access's own edge, or a further one, for `predecessor`.
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
    access.mutex_or_version = location.version;
    location.set_kind = AccessKind::in;  // no access joins a set that was read, also if the reader
                                         // leaves
    enter(access, location.readers);
  }

  void take_out_first(Access*& list) noexcept {
    Access& access = *list;
    AccessBlock& block = block_of(access);
    list = access.next;
    if (block.places > 1) {
      --block.places;
    } else if (block.last_linked == task.id) {  // its edge is found and not added yet
      block.places = AccessBlock::leaving;
    } else {
      access.next = left;
      left = &access;
    }
  }
  void take_out(Access*& list) noexcept {
    while (list != nullptr) take_out_first(list);
  }
  // follow_all() and take_out() in one loop.
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
    access.mutex_or_version = ++location.version;
    location.set_kind = access.kind;
    enter(access, location.set);
  }

  [[gnu::noinline]] void write_everything(Access& access, const std::span<Location> locations) {
    for (Location& location : locations) write_after(access, location);
  }
  // `last`: the last access to everything before this one.
  void write_last(Access& access, Access*& last) {
    take_out_followed(access, last);
    enter(access, last);
  }
  // The first access of a task that names some memory follows `last`.
  [[gnu::noinline]] void follow_everything(AccessBlock& block, Access*& last) {
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
    const bool joins = location.set != nullptr && location.set_kind == access.kind;
    if (!joins) {
      take_out(location.before);
      Access*& kept = location.readers != nullptr ? location.readers : location.set;
      location.before = kept;
      kept = nullptr;
      take_out(location.readers);
      take_out(location.set);
      begin_set(access.kind, location, location.version + 1);
    }
    follow_all(access, location.before);
    enter_set(access, location);
  }
  void begin_set(const AccessKind kind, Location& location, const std::uint32_t version) {
    location.set_kind = kind;
    location.listed = 0;
    location.version = version;
    if (location.mutex != nullptr) drop_mutex(location.mutex);
    location.mutex = kind == AccessKind::mutexinoutset ? new Mutex : nullptr;
    if (location.mutex != nullptr) location.mutex->version = version;
  }
  void enter_set(Access& access, Location& location) noexcept {
    if (location.mutex != nullptr) {
      access.mutex_or_version = reinterpret_cast<std::uintptr_t>(location.mutex);
      location.mutex->references.fetch_add(1, std::memory_order_relaxed);
    } else {
      access.mutex_or_version = location.version;
    }
    enter(access, location.set);
  }

  void follow_completion(Access& access) {
    find(access.edge, *static_cast<detail::Completion*>(const_cast<void*>(access.address)));
  }

  // ---- where ranges are in use ----
  // All accesses of the task first follow what they find, then enter: the task does not follow its
  // own accesses, and the result does not depend on the order of accesses.

  // The access follows the conflicting accesses of an overlapping location. Writers stay there
  // until they are overwritten, and each is followed, also behind readers, because its failure is
  // inherited. `version` is the version that the access will have.
  void follow_overlapped(Access& access, Location& location, const std::uint64_t version) {
    const Access* const one = location.set;  // all accesses of a set are alike
    const bool in_set = one != nullptr && is_set(one->kind) && one->kind == access.kind;
    if (!in_set || conflict_by_range(*one, access, version)) {
      follow_some(access, location, location.set, version);
    }
    if (access.kind != AccessKind::in) follow_some(access, location, location.readers, version);
    follow_some(access, location, location.before, version);
  }
  void follow_some(Access& access, Location& location, Access*& list,
                   const std::uint64_t version) {
    for (Access** link = &list; *link != nullptr;) {
      Access& earlier = **link;
      if (earlier.edge.task->event.has_fired() &&
          !table.keeps_fired_.load(std::memory_order_relaxed)) {  // (6)
        take_out_first(*link);
        if (location.listed != 0) --location.listed;
        continue;
      }
      if (conflict_by_range(earlier, access, version)) follow(access, earlier);
      link = &earlier.next;
    }
  }
  void follow_all_of(Access& access, Location& location) {
    for (Access* const list : {location.set, location.readers, location.before}) {
      follow_all(access, list);
    }
  }

  // REQUIRES: each access of the list has been followed.
  void overwrite(Access*& list, const std::uint32_t time) noexcept {
    while (list != nullptr) {
      list->overwrite(time);
      take_out_first(list);
    }
  }
  void overwrite(Location& location, const std::uint32_t time) noexcept {
    overwrite(location.set, time);
    overwrite(location.readers, time);
    overwrite(location.before, time);
    location.listed = 0;
  }

  void enter_by_range(Access& access, Ranged& location, const std::uint32_t time) {
    if (access.kind == AccessKind::in) {
      access.mutex_or_version = location.version;
      location.set_kind = AccessKind::in;  // as read()
      enter(access, location.readers);
    } else if (is_set(access.kind)) {
      if (!joins_set(access, location)) {
        overwrite(location.before, time - 1);  // neither for this access, nor for its neighbours
        location.before = std::exchange(location.readers, nullptr);
        Access** end = &location.before;  // the youngest first
        while (*end != nullptr) end = &(*end)->next;
        *end = std::exchange(location.set, nullptr);
        begin_set(access.kind, location, time);
      }
      enter_set(access, location);
    } else {
      overwrite(location, time);
      location.set_kind = access.kind;
      access.mutex_or_version = location.version = time;
      enter(access, location.set);
    }
    ++location.listed;
  }
  [[nodiscard]] static bool joins_set(const Access& access, const Ranged& location) noexcept {
    return location.set != nullptr && location.set_kind == access.kind;
  }
};

struct DependTable::Ranges {
  IntervalTree<Ranged> locations;
  std::vector<Interval> emptied;  // emptied by the task that is being linked
  std::size_t sweep_at = 64;      // (2)
  std::uint32_t time = 0;         // (7); above the versions of accesses that came from the table

  // Begins again after 4 billion tasks, and skips the values 0 (no time) and 1 (before 0 again).
  [[nodiscard]] std::uint32_t next_time() noexcept {
    do {
      ++time;
    } while (time < 2 || time == Access::not_linked);
    return time;
  }
  [[nodiscard]] static bool is_empty(const Location& location) noexcept {
    return location.set == nullptr && location.readers == nullptr && location.before == nullptr;
  }
  void erase_emptied() noexcept {
    for (const Interval& key : emptied) {
      const Ranged* const location = locations.find(key);
      // named twice here, or entered since
      if (location == nullptr || !is_empty(*location)) continue;
      if (location->mutex != nullptr) drop_mutex(location->mutex);
      locations.erase(key);
    }
    emptied.clear();
  }
  template <class Visit>
  void each_and_erase(Visit visit) {
    locations.each([&](const Interval& key, Location& location) {
      visit(location);
      if (is_empty(location)) emptied.push_back(key);
    });
    erase_emptied();
  }
};

DependTable::DependTable(Lineage* const lineage) noexcept : lineage_(lineage) {}

DependTable::~DependTable() {
  if (ranges_ != nullptr) {
    ranges_->locations.each([](const Interval&, Location& location) {
      if (location.mutex != nullptr) drop_mutex(location.mutex);
    });
  }
  for (std::size_t index = 0; index < capacity_; ++index) {
    if (locations_[index].mutex != nullptr) drop_mutex(locations_[index].mutex);
  }
}

bool DependTable::link(Task& task, base::SlabCache& edges, Outcome& outcome) noexcept {
  if (lineage_ == nullptr) [[likely]] return link_as<false>(task, edges, outcome);
  lineage_->mark(task);
  return link_as<true>(task, edges, outcome);
}

// All accesses of the task are entered. Returns true if the task waits for no other.
template <bool told>
bool DependTable::end_linking(Link<told>& link) noexcept {
  const bool ready = link.close();
  if constexpr (told) lineage_->remember(link.task, link.outcome);
  remove_all(link.left, link.outcome);
  if (--link.task.accesses->places == 0) lose(link.task, link.outcome);
  return ready;
}

template <bool told>
bool DependTable::link_as(Task& task, base::SlabCache& edges, Outcome& outcome) noexcept {
  AccessBlock& block = *task.accesses;
  const bool usual = ((unusual_ | block.marks) & (AccessBlock::ranges | everything)) == 0;
  if (!usual && ((unusual_ | block.marks) & AccessBlock::ranges) != 0) [[unlikely]] {
    return link_by_range<told>(task, edges, outcome);
  }
  Link<told> link(task, edges, *this, outcome);
  block.places = 1;  // the count of this function, until all accesses are entered
  // No other thread knows the task yet.
  task.references.store(task.references.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  if (!usual && everything_ != nullptr) [[unlikely]] link.follow_everything(block, everything_);
  for (Access& access : block.accesses()) {
    if (!names_memory(access.kind)) [[unlikely]] {
      if (access.kind == AccessKind::everything) {
        link.write_everything(access, {locations_.get(), capacity_});
        link.write_last(access, everything_);
        unusual_ |= everything;
      } else if (access.kind == AccessKind::after) {
        link.follow_completion(access);
      }
      continue;
    }
    Location& location = locate(access.address);
    if (location.last_task == task.id) {  // the same address again
      if (access.kind != AccessKind::mutexinoutset) access.mutex_or_version = Access::not_linked;
      continue;
    }
    location.last_task = task.id;
    if (location.listed >= location.sweep_at) [[unlikely]] sweep(location, link.left);
    if (is_set(access.kind)) {
      link.join_set(access, location);
    } else if (access.kind == AccessKind::in) {
      link.read(access, location);
    } else {
      link.write(access, location);
    }
    ++location.listed;
  }
  return end_linking(link);
}

template <bool told>
bool DependTable::link_by_range(Task& task, base::SlabCache& edges, Outcome& outcome) noexcept {
  use_ranges(outcome);
  Ranges& ranges = *ranges_;
  if (ranges.locations.size() >= ranges.sweep_at) {
    ranges.each_and_erase([&](Location& location) { sweep(location, outcome); });
    ranges.sweep_at = std::max<std::size_t>(64, 2 * ranges.locations.size());
  }
  Link<told> link(task, edges, *this, outcome);
  const std::uint32_t time = ranges.next_time();
  AccessBlock& block = *task.accesses;
  block.linked_at = time;
  block.places = 1;  // the count of this function, until all accesses are entered
  // No other thread knows the task yet.
  task.references.store(task.references.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  for (Access& access : block.accesses()) {  // complete tasks leave before predecessors are
                                             // searched
    if (!names_memory(access.kind)) continue;
    Ranged& own = ranges.locations.at(interval_of(access));
    if (own.listed >= own.sweep_at) sweep(own, link.left);
  }
  if (everything_ != nullptr) [[unlikely]] link.follow_everything(block, everything_);
  for (Access& access : block.accesses()) {
    if (access.kind == AccessKind::everything) {
      ranges.locations.each([&](const Interval&, Location& location) {
        link.follow_all_of(access, location);
      });
    } else if (access.kind == AccessKind::after) {
      link.follow_completion(access);
    }
    if (!names_memory(access.kind)) continue;
    const Interval place = interval_of(access);
    Ranged& own = ranges.locations.at(place);
    access.mutex_or_version = 0;
    if (own.last_task == task.id) {  // the same interval again
      if (access.kind != AccessKind::mutexinoutset) access.mutex_or_version = Access::not_linked;
      continue;
    }
    own.last_task = task.id;
    const std::uint64_t version = link.joins_set(access, own) ? own.version : time;
    ranges.locations.each_overlapping(place, [&](const Interval&, Location& location) {
      link.follow_overlapped(access, location, version);
    });
  }
  enter_ranges(link, block, time);
  return end_linking(link);
}

// Takes out the accesses that the task overwrites completely; then enters the accesses of the task.
template <bool told>
void DependTable::enter_ranges(Link<told>& link, AccessBlock& block,
                               const std::uint32_t time) noexcept {
  Ranges& ranges = *ranges_;
  const auto is_again = [](const Access& access) {
    return access.kind != AccessKind::mutexinoutset && access.version() == Access::not_linked;
  };
  for (Access& access : block.accesses()) {
    if (access.kind == AccessKind::everything) {
      ranges.locations.each([&](const Interval& key, Location& location) {
        link.overwrite(location, time);
        ranges.emptied.push_back(key);
      });
      link.write_last(access, everything_);
    }
    if (!names_memory(access.kind) || is_again(access)) continue;
    const Interval place = interval_of(access);
    ranges.locations.each_overlapping(place, [&](const Interval& key, Location& location) {
      const bool writes = access.kind == AccessKind::out || access.kind == AccessKind::inout;
      // An access of the task itself stays: it may outlive the access that covers it, if that
      // access is released early.
      if (writes && place.contains(key) && location.last_task != link.task.id) {
        link.overwrite(location, time);
      }
      if (Ranges::is_empty(location)) ranges.emptied.push_back(key);
    });
  }
  for (Access& access : block.accesses()) {
    if (!names_memory(access.kind) || is_again(access)) continue;
    Ranged& own = ranges.locations.at(interval_of(access));
    if (own.entered == time) continue;  // a mutexinoutset again
    own.entered = time;
    link.enter_by_range(access, own, time);
  }
  ranges.erase_emptied();
}

// The first range is named: the live entries move from the table to the tree.
void DependTable::find_ranges(Outcome& outcome) {
  auto found = std::make_unique<Ranges>();
  for (std::size_t index = 0; index < capacity_; ++index) {
    Location& location = locations_[index];
    if (location.address == nullptr) continue;
    sweep(location, outcome);
    Interval covered{reinterpret_cast<std::uintptr_t>(location.address), 0};
    for (const Access* list : {location.set, location.readers, location.before}) {
      for (; list != nullptr; list = list->next) {
        covered.end = std::max(covered.end, interval_of(*list).end);
      }
    }
    found->time = std::max(found->time, location.version);
    if (covered.end == 0) continue;
    Ranged& moved = found->locations.at(covered);
    static_cast<Location&>(moved) = std::exchange(location, Location{});
  }
  found->sweep_at = std::max<std::size_t>(64, 2 * found->locations.size());
  for (std::size_t index = 0; index < capacity_; ++index) {
    if (locations_[index].mutex != nullptr) drop_mutex(locations_[index].mutex);
  }
  locations_.reset();
  capacity_ = room_ = 0;
  ranges_ = std::move(found);
  unusual_ |= AccessBlock::ranges;
}

DependTable::Location& DependTable::locate(const void* const address) {
  const auto key = reinterpret_cast<std::uintptr_t>(address);
  std::size_t index = (key * 0x9E3779B97F4A7C15u) >> shift_;  // Fibonacci hashing
  while (locations_[index].address != address) {
    if (locations_[index].address == nullptr) {
      locations_[index].address = address;
      --room_;
      break;
    }
    index = (index + 1) & (capacity_ - 1);
  }
  return locations_[index];
}

void DependTable::resize(const std::size_t room, Outcome& outcome) {
  if (ranges_ != nullptr) return;
  const auto is_live = [](const Location& location) {
    return location.set != nullptr || location.readers != nullptr || location.before != nullptr;
  };
  std::size_t live = 0;
  for (std::size_t index = 0; index < capacity_; ++index) {
    if (locations_[index].address == nullptr) continue;
    sweep(locations_[index], outcome);
    if (is_live(locations_[index])) ++live;
  }
  // Half full at most after as many insertions again, whatever one task names.
  const std::size_t capacity = std::bit_ceil((live + room) * 4 + 64);
  auto locations = std::make_unique<Location[]>(capacity);  // from here on nothing throws
  const std::unique_ptr<Location[]> old = std::exchange(locations_, std::move(locations));
  const std::size_t old_capacity = std::exchange(capacity_, capacity);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(capacity));
  room_ = capacity / 2;
  for (std::size_t index = 0; index < old_capacity; ++index) {
    Location& location = old[index];
    if (location.address != nullptr && is_live(location)) {
      locate(location.address) = location;
    } else if (location.mutex != nullptr) {
      drop_mutex(location.mutex);
    }
  }
}

void DependTable::sweep(Location& location, Outcome& outcome) noexcept {
  Access* swept = nullptr;
  sweep(location, swept);
  remove_all(swept, outcome);
}

void DependTable::sweep(Location& location, Access*& swept) noexcept {
  location.listed = 0;
  sweep_list(location.before, false, location, swept);
  // The next neighbour must find the set, and not begin another one, to inherit the failures before
  // it.
  const bool keeps_one = is_set(location.set_kind) && location.before != nullptr &&
                         keeps_fired_.load(std::memory_order_relaxed);
  sweep_list(location.set, keeps_one, location, swept);
  sweep_list(location.readers, false, location, swept);
  location.sweep_at = std::max<std::uint32_t>(16, location.listed * 2);
}

namespace {

// The accesses of a list that stay although they have fired: they carry all the information that
// the removed ones had. (6)
struct Kept {
  const Access* first_cause = nullptr;  // the access whose failure was created first
  const Access* oldest_failed = nullptr;
  const Access* oldest = nullptr;
  [[nodiscard]] bool has(const Access& access) const noexcept {
    return &access == first_cause || &access == oldest_failed || &access == oldest;
  }
};

// The oldest one stays, too, since younger ones may belong to a finish() whose end forgets them.
// Lists begin with the youngest.
[[gnu::cold, gnu::noinline]] Kept find_kept(const Access* const list,
                                            const bool keeps_one) noexcept {
  Kept kept;
  const Failure* first = nullptr;
  for (const Access* access = list; access != nullptr; access = access->next) {
    if (!access->has_ended()) continue;
    if (keeps_one) kept.oldest = access;
    const Failure* const failure = carried(*access);
    if (failure == nullptr) continue;
    kept.oldest_failed = access;
    if (first != nullptr && first->who.id <= failure->who.id) continue;
    first = failure;
    kept.first_cause = access;
  }
  return kept;
}

}  // namespace

// Takes out the fired accesses, except those of find_kept().
void DependTable::sweep_list(Access*& list, const bool keeps_one, Location& location,
                             Access*& swept) noexcept {
  Kept kept;
  if (keeps_fired_.load(std::memory_order_relaxed)) [[unlikely]] {
    kept = find_kept(list, keeps_one);
  }
  for (Access** link = &list; *link != nullptr;) {
    Access& access = **link;
    if (access.has_ended() && !kept.has(access)) {
      *link = access.next;
      access.next = swept;
      swept = &access;
    } else {
      link = &access.next;
      ++location.listed;
    }
  }
}

void DependTable::remove_all(Access*& list, Outcome& outcome) noexcept {
  while (list != nullptr) {
    Access& access = *list;
    list = access.next;
    leave_table(access, outcome);
  }
}

void DependTable::clear(Outcome& outcome) noexcept {
  const auto clear_one = [&](Location& location) {
    remove_all(location.set, outcome);
    remove_all(location.readers, outcome);
    remove_all(location.before, outcome);
    if (location.mutex != nullptr) drop_mutex(location.mutex);
  };
  for (std::size_t index = 0; index < capacity_; ++index) clear_one(locations_[index]);
  if (ranges_ != nullptr) {
    ranges_->locations.each([&](const Interval&, Location& location) { clear_one(location); });
    ranges_.reset();
  }
  remove_all(everything_, outcome);
  locations_.reset();
  capacity_ = room_ = 0;
  unusual_ = 0;
}

void DependTable::forget_complete(Outcome& outcome) noexcept {
  bool kept = false;
  if (keeps_fired_.load(std::memory_order_relaxed)) [[unlikely]] {
    for (std::size_t index = 0; index < capacity_; ++index) {
      sweep(locations_[index], outcome);
      kept = kept || !Ranges::is_empty(locations_[index]);
    }
    if (ranges_ != nullptr) {
      ranges_->each_and_erase([&](Location& location) { sweep(location, outcome); });
      kept = kept || ranges_->locations.size() != 0;
    }
    remove_all(everything_, outcome);
  }
  if (kept) return;
  keeps_fired_.store(false, std::memory_order_relaxed);
  has_failures_.store(false, std::memory_order_relaxed);
  clear(outcome);
}

void DependTable::end_scope(const Scope& scope, const bool told, Outcome& outcome) noexcept {
  for (std::size_t index = 0; index < capacity_; ++index) {
    end_scope(locations_[index], scope, told, outcome);
  }
  if (ranges_ == nullptr) return;
  ranges_->each_and_erase([&](Location& location) { end_scope(location, scope, told, outcome); });
}

void DependTable::end_scope(Location& location, const Scope& scope, const bool told,
                            Outcome& outcome) noexcept {
  for (Access** list : {&location.set, &location.readers, &location.before}) {
    for (Access** link = list; *link != nullptr;) {
      Access& access = **link;
      Task& task = *access.edge.task;
      if (task.scope == &scope && told) {
        *link = access.next;
        leave_table(access, outcome);
        continue;
      }
      if (task.scope == &scope) task.scope = scope.outer;  // nobody else reads it any more
      link = &access.next;
    }
  }
}

}  // namespace imbrex::task
