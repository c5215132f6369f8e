// SPDX-License-Identifier: BSD-3-Clause
#include "task/access/accesses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/few_addresses.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "task/access/conflicts.hpp"
#include "task/access/depend.hpp"
#include "task/access/inheritance.hpp"
#include "task/access/mutexes.hpp"
#include "task/access/releases.hpp"
#include "task/access/in_place.hpp"
#include "task/scope_counts.hpp"

namespace imbrex::task {

namespace {

const char* kind_name(const AccessKind kind) noexcept {
  static constexpr const char* names[] = {"in",       "out",   "inout",      "mutexinoutset",
                                          "inoutset", "after", "everything", "an end",
                                          "an end"};
  return names[static_cast<std::size_t>(kind)];
}

[[noreturn, gnu::cold, gnu::noinline]] void throw_two_kinds(const char* const name,
                                                            const AccessSpec& first,
                                                            const AccessSpec& second) {
  throw Error(fmt::format(
      "imbrex: task \"{}\" names {} as {} and as {}: give each object once, inout if it is both "
      "read and written",
      name, first.address, kind_name(first.kind), kind_name(second.kind)));
}

[[nodiscard]] inline bool surely_distinct(const std::span<const AccessSpec> specs) noexcept {
  base::FewAddresses addresses;
  for (const AccessSpec& spec : specs) {
    if (!addresses.add(spec.address)) return false;  // may be an end of an object, too: that only
                                                     // costs a closer check
  }
  return true;
}

// check_accesses() for so many accesses that comparing all pairs would take too long.
[[gnu::cold, gnu::noinline]] void check_many(const char* const name,
                                             const std::span<const AccessSpec> specs) {
  const auto no_later = [](const AccessSpec& first, const AccessSpec& second) {
    return first.address >= second.address;
  };
  // sorted already, as from an array
  if (std::ranges::adjacent_find(specs, no_later) == specs.end()) return;
  std::vector<const AccessSpec*> sorted;
  sorted.reserve(specs.size());
  for (const AccessSpec& spec : specs) {
    if (spec.kind < AccessKind::object_end) sorted.push_back(&spec);
  }
  const auto look = [&] {
    for (std::size_t at = 1; at < sorted.size(); ++at) {
      const AccessSpec& first = *sorted[at - 1];
      const AccessSpec& second = *sorted[at];
      if (first.address == second.address && first.kind != second.kind &&
          same_object(first, second)) {
        throw_two_kinds(name, first, second);
      }
    }
  };
  const auto key = [](const AccessSpec* const spec) {
    return std::tuple(spec->address, end_of(*spec), spec);
  };
  std::ranges::sort(sorted, {}, key);
  look();
  std::erase_if(sorted, [](const AccessSpec* const spec) { return is_range(*spec); });
  look();  // objects at one address are the same, whatever their size
}

}  // namespace

void check_accesses(const char* const name, const std::span<const AccessSpec> specs) {
  constexpr std::size_t few = 32;
  if (surely_distinct(specs)) return;
  if (specs.size() > few) return check_many(name, specs);
  for (std::size_t second = 1; second < specs.size(); ++second) {
    const void* const address = specs[second].address;
    for (std::size_t first = 0; first < second; ++first) {
      if (specs[first].address == address && specs[first].kind != specs[second].kind) [[unlikely]] {
        if (same_object(specs[first], specs[second])) {
          throw_two_kinds(name, specs[first], specs[second]);
        }
      }
    }
  }
}

namespace {

[[gnu::noinline]] void drop_mutexes(AccessBlock& block) noexcept {
  for (const Access& access : block.accesses()) {
    if (access.mutex() != nullptr) drop_mutex(access.mutex());
  }
}

}  // namespace

bool blocks(Task& task, Task& next) noexcept {
  const bool by_range = next.accesses->linked_at != 0;
  for (const Access& mine : task.accesses->accesses()) {
    if (!orders_siblings(mine.kind) || mine.has_ended()) continue;
    for (const Access& other : next.accesses->accesses()) {
      if (!orders_siblings(other.kind)) continue;
      if (other.kind == AccessKind::everything || mine.kind == AccessKind::everything) return true;
      if (by_range) {
        if (conflict_by_range(mine, other, other.version())) return true;
      } else if (other.address == mine.address && conflict(mine.kind, other.kind)) {
        return true;
      }
    }
  }
  return false;
}

bool holds_access(const Task& task) noexcept {
  if (task.state.load(std::memory_order_acquire) != State::complete) return false;
  AccessBlock* const block = task.accesses;
  if (block == nullptr || !block->has_mark(AccessBlock::apart)) return false;
  return std::ranges::any_of(block->accesses(), [](const Access& access) {
    return access.end.load(std::memory_order_relaxed) == End::by_event;
  });
}

void end_marked(Task& task, Waiter* const first, ReadyList& ready) noexcept {
  AccessBlock& block = *task.accesses;
  if (block.is_failed()) {
    for (Waiter* waiter = first; waiter != nullptr; waiter = waiter->next) {
      if (waiter->by_address()) pass_on(task, *waiter->task, true);
    }
  }
  if (!block.has_mark(AccessBlock::mutexes)) return;
  for (Access& access : block.accesses()) {
    if (access.mutex() == nullptr) continue;
    // The other mutexes have been given back, or will be when their event fires.
    if (access.end.load(std::memory_order_relaxed) == End::with_task) give_back(access, ready);
  }
}

namespace {

// An Access cannot be moved: exchanges the names of two accesses.
void exchange(Access& first, Access& second) noexcept {
  std::swap(first.address, second.address);
  std::swap(first.kind, second.kind);
  std::swap(first.bytes, second.bytes);
}

void sift_down(const std::span<Access> heap, std::size_t at) noexcept {
  for (std::size_t child = 2 * at + 1; child < heap.size(); child = 2 * at + 1) {
    if (child + 1 < heap.size() && heap[child].address < heap[child + 1].address) ++child;
    if (heap[child].address <= heap[at].address) return;
    exchange(heap[at], heap[child]);
    at = child;
  }
}

// A heap sort: in place, and without a bad worst case.
[[gnu::cold, gnu::noinline]] void sort_by_address(const std::span<Access> all) noexcept {
  for (std::size_t at = all.size() / 2; at-- > 0;) sift_down(all, at);
  for (std::size_t end = all.size(); end-- > 1;) {
    exchange(all[0], all[end]);
    sift_down(all.first(end), 0);
  }
}

void note_future(const AccessSpec& spec, const Task* const parent) noexcept {
  auto& past = *static_cast<detail::Completion*>(const_cast<void*>(spec.address));
  share(past, parent);
  add_reference(past);
}

[[gnu::noinline]] void note_kind(AccessBlock& block, const AccessSpec& spec,
                                 const Task* const parent) noexcept {
  switch (spec.kind) {
    case AccessKind::mutexinoutset: block.marks |= AccessBlock::mutexes; return;
    case AccessKind::range_end: block.marks |= AccessBlock::ranges; return;
    case AccessKind::after:
      block.marks |= AccessBlock::futures;
      note_future(spec, parent);
      return;
    default: return;
  }
}

// Mutexes are taken in the order of the accesses, which is the order of addresses, so that no cycle
// can form.
[[gnu::noinline]] void sort_for_mutexes(AccessBlock& block) noexcept {
  const std::span<Access> all = block.accesses();
  if (std::ranges::any_of(all, [](const Access& access) { return access.bytes == 0; })) {
    sort_with_ends(all);
    return;
  }
  const auto address_of = [](const Access& each) { return each.address; };
  if (!std::ranges::is_sorted(all, {}, address_of)) sort_by_address(all);
}

}  // namespace

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
    access->bytes = spec.bytes;
    if (spec.kind > AccessKind::inout) [[unlikely]] note_kind(*block, spec, task.parent);
    ++access;
  }
  task.accesses = block;
  if ((block->marks & AccessBlock::mutexes) != 0) [[unlikely]] sort_for_mutexes(*block);
}

std::vector<AccessSpec> specs_of(const Task& task) {
  std::vector<AccessSpec> specs;
  if (task.accesses == nullptr) return specs;
  for (const Access& access : task.accesses->accesses()) {
    specs.emplace_back(access.address, access.kind, access.bytes);
  }
  return specs;
}

namespace {

[[gnu::cold, gnu::noinline]] void destroy_rest(AccessBlock& block) noexcept {
  drop_mutexes(block);
  forget_inherited(block);
  delete block.rare.exchange(nullptr, std::memory_order_acq_rel);
}

}  // namespace

void destroy_accesses(Task& task, base::SlabCache& edges) noexcept {
  AccessBlock& block = *task.accesses;
  for (ExtraEdge* edge = block.extra; edge != nullptr;) {
    ExtraEdge* const next = edge->next;
    edges.give(edge, base::slab_class(sizeof(ExtraEdge)));
    edge = next;
  }
  block.extra = nullptr;
  constexpr std::uint8_t more = AccessBlock::mutexes | AccessBlock::failed | AccessBlock::apart;
  if (block.has_mark(more)) [[unlikely]] destroy_rest(block);
}

namespace {

// `task` runs and its first access ends apart: takes over the waiters of its event.
[[gnu::cold, gnu::noinline]] Releases& make_releases(Task& task, Outcome& outcome) noexcept {
  Rare& rare = rare_of(*task.accesses);
  auto* const releases = new Releases(task);
  rare.releases.store(releases, std::memory_order_release);
  task.accesses->mark(AccessBlock::apart);
  releases->take_waiters(outcome);
  return *releases;
}

[[nodiscard]] Releases& releases_for(Task& task, Outcome& outcome) noexcept {
  Releases* const present = releases_of(*task.accesses);
  return present != nullptr ? *present : make_releases(task, outcome);
}

}  // namespace

bool release_access(Task& task, const void* const address, const std::size_t bytes,
                    Outcome& outcome) noexcept {
  if (task.accesses == nullptr) return false;
  return releases_for(task, outcome).release(address, bytes, outcome);
}

bool hold_access(Task& task, const void* const address, const std::size_t bytes,
                 Outcome& outcome) noexcept {
  if (task.accesses == nullptr) return false;
  if (task.parent != nullptr && task.parent->family != nullptr &&
      task.parent->family->table != nullptr) {
    task.parent->family->table->keep_fired();
  }
  return releases_for(task, outcome).hold(address, bytes);
}

void list_open(Task& task, std::vector<detail::OpenAccess>& open) {
  for (const Access& access : task.accesses->accesses()) {
    const bool ordinary = access.kind == AccessKind::in || access.kind == AccessKind::out ||
                          access.kind == AccessKind::inout;
    if (!ordinary || access.end.load(std::memory_order_relaxed) != End::with_task) continue;
    const Interval covered = interval_of(access);
    open.push_back({access.address, covered.end - covered.begin, is_range(access)});
  }
}

namespace {

// Whether the running `task` has declared an access of this name, and ended it.
bool has_ended(const Task& task, const void* const address, const std::size_t bytes) noexcept {
  if (task.accesses == nullptr) return false;
  return std::ranges::any_of(task.accesses->accesses(), [&](const Access& access) {
    if (access.address != address || !names_memory(access.kind)) return false;
    if (is_range(access) != (bytes != 0)) return false;
    const Interval covered = interval_of(access);
    if (bytes != 0 && covered.end - covered.begin != bytes) return false;
    return access.end.load(std::memory_order_relaxed) != End::with_task;
  });
}

}  // namespace

void throw_not_declared(const char* const what, const Task& task, const void* const address,
                        const std::size_t bytes) {
  const std::string who = detail::describe(label_of(task));
  if (has_ended(task, address, bytes)) {
    throw Error(fmt::format("imbrex: {} of {} in {}: this task's access to it has ended already, "
                            "by release() or by an event that has fired",
                            what, address, who));
  }
  if (bytes == 0) {
    throw Error(fmt::format("imbrex: {} of {} in {}: this task declares no access to it", what,
                            address, who));
  }
  throw Error(fmt::format("imbrex: {} of the {} bytes from {} on in {}: this task declares no "
                          "range with exactly these bounds, and a part of a range cannot be "
                          "released",
                          what, bytes, address, who));
}

}  // namespace imbrex::task

namespace imbrex::detail {

void throw_null_access(const char* const what) {
  throw Error(fmt::format("imbrex: {} was given a null pointer for an access: an access names "
                          "memory by its address",
                          what));
}

void throw_long_range() {
  throw Error("imbrex: range() was given a count that reaches beyond the end of memory. Is the "
              "count a negative number?");
}

}  // namespace imbrex::detail
