// SPDX-License-Identifier: BSD-3-Clause
// Only in the variant for ThreadSanitizer; docs/design/races.md has the argument.
#include "sched/run/task_races.hpp"

#include "task/access/conflicts.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace imbrex::sched::task_races {

namespace tell = trace::races;
using task::Access;
using task::AccessKind;
using task::Scope;

namespace {

// ---- keys of accesses ------------------------------------------------------------------------

// Accesses of one class conflict with the same other accesses. all, any: accesses to everything.
enum class Class : std::uint8_t { reads, writes, mutexes, sets, all, any };

Class class_of(const AccessKind kind) noexcept {
  switch (kind) {
    case AccessKind::in: return Class::reads;
    case AccessKind::mutexinoutset: return Class::mutexes;
    case AccessKind::inoutset: return Class::sets;
    case AccessKind::everything: return Class::all;
    default: return Class::writes;
  }
}

// The key of the accesses of siblings to a place. Two keys may be equal, seldom: ThreadSanitizer
// then sees an order that does not exist.
const void* key_of(const Task& task, const void* const place, const Class kind) noexcept {
  constexpr std::size_t count = 1 << 20;
  static std::array<std::uint64_t, count> keys;
  std::uint64_t z = reinterpret_cast<std::uintptr_t>(place) * 0x9e3779b97f4a7c15 +
                    task.parent->id * 8 + static_cast<unsigned>(kind);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return &keys[(z ^ (z >> 31)) % count];
}

// ---- keys of overlapping memory --------------------------------------------------------------

// Memory as blocks of 8^n bytes, each in one block of the next larger size. A block stands for
// itself and, as another place, for all blocks within it, itself included. The cover of an interval
// is then ordered with everything that overlaps it, and with nothing else: of two overlapping
// blocks one lies in the other.
constexpr unsigned digit = 3;
constexpr unsigned bits_max = 48;

const void* itself(const std::uintptr_t begin, const unsigned bits) noexcept {
  return reinterpret_cast<const void*>((begin >> bits << bits) |
                                       (std::uintptr_t{2 * bits + 1} << 56));
}
const void* within(const std::uintptr_t begin, const unsigned bits) noexcept {
  return reinterpret_cast<const void*>((begin >> bits << bits) |
                                       (std::uintptr_t{2 * bits + 2} << 56));
}

// Calls visit(begin, bits) for the largest blocks that cover the interval.
template <class Visit>
void each_block(const task::Interval covered, Visit visit) {
  for (std::uintptr_t at = covered.begin; at < covered.end;) {
    unsigned bits = 0;
    while (bits + digit < bits_max && at >> (bits + digit) << (bits + digit) == at &&
           covered.end - at >= std::uintptr_t{1} << (bits + digit)) {
      bits += digit;
    }
    visit(at, bits);
    at += std::uintptr_t{1} << bits;
  }
}

// Calls visit(place) for all overlapping blocks.
template <class Visit>
void each_overlapping(const Access& access, Visit visit) {
  each_block(task::interval_of(access), [&](const std::uintptr_t begin, unsigned bits) {
    visit(within(begin, bits));
    while ((bits += digit) < bits_max) visit(itself(begin, bits));
  });
}

// The reverse: for all places under which other accesses look.
template <class Visit>
void each_covered(const Access& access, Visit visit) {
  each_block(task::interval_of(access), [&](const std::uintptr_t begin, unsigned bits) {
    visit(itself(begin, bits));
    for (; bits < bits_max; bits += digit) visit(within(begin, bits));
  });
}

// ---- accesses --------------------------------------------------------------------------------

void follow_others(const Task& task, const Access& access) noexcept {
  const AccessKind kind = access.kind;
  if (kind == AccessKind::after) {
    tell::after(&static_cast<const detail::Completion*>(access.address)->event);
  }
  if (kind == AccessKind::everything) tell::after(key_of(task, nullptr, Class::any));
  if (!task::names_memory(kind)) return;
  const Class own = class_of(kind);
  const auto follow = [&](const void* const place) {
    for (const Class other : {Class::reads, Class::writes, Class::mutexes, Class::sets}) {
      if (other == own && (own == Class::reads || own == Class::sets)) continue;
      tell::after(key_of(task, place, other));
    }
  };
  follow(access.address);
  if (task.accesses->linked_at != 0) each_overlapping(access, follow);
}

void precede_others(const Task& task, const Access& access) noexcept {
  if (access.kind == AccessKind::everything) tell::before(key_of(task, nullptr, Class::all));
  if (!task::names_memory(access.kind)) return;
  const auto precede = [&](const void* const place) {
    tell::before(key_of(task, place, class_of(access.kind)));
  };
  precede(access.address);
  each_covered(access, precede);  // a later sibling may name a range
}

// The task comes after all predecessors of its accesses, and after siblings that access everything.
void follow_all(Task& task) noexcept {
  tell::after(&task);
  tell::after_holds();
  if (task.accesses == nullptr) return;
  for (const Access& access : task.accesses->accesses()) follow_others(task, access);
  tell::after(key_of(task, nullptr, Class::all));
}

// The key for a wait for children.
const void* key_of_children(const Scope& scope) noexcept { return &scope.finished; }
// The key for a wait for descendants: one for each finish(), and one for all code outside of any.
const void* key_of_descendants(const Scope& scope) noexcept {
  static char nobody;
  return scope.finish != nullptr ? static_cast<const void*>(&scope.finish->spawned) : &nobody;
}

void precede_all(Task& task) noexcept {
  if (task.accesses != nullptr) {
    for (const Access& access : task.accesses->accesses()) {
      const bool early = access.end.load(std::memory_order_relaxed) == task::End::early;
      if (!early) precede_others(task, access);
    }
    tell::before(key_of(task, nullptr, Class::any));
  }
  tell::before(&task.event);
  tell::before(key_of_children(*task.scope));
  tell::before(key_of_descendants(*task.scope));
}

}  // namespace

Body::Body(Task& task) noexcept : task_(task), inside_(task.name) { follow_all(task); }
Body::~Body() { precede_all(task_); }

void call(void (*const function)(void*), void* const argument) {
  tell::call(current_worker()->fiber->stack.bottom, function, argument);
}

void spawn(const Task& task) noexcept { tell::before(&task); }

void release(const Task& task, const void* const address, const std::size_t bytes) noexcept {
  if (task.accesses == nullptr) return;
  for (const Access& access : const_cast<Task&>(task).accesses->accesses()) {
    if (access.address != address || !task::names_memory(access.kind)) continue;
    const task::Interval covered = task::interval_of(access);
    if (bytes == 0 || covered.end - covered.begin == bytes) precede_others(task, access);
  }
}

void waited(const Scope& scope, const task::Await what) noexcept {
  tell::after(key_of_children(scope));
  if (what == task::Await::descendants) tell::after(key_of_descendants(scope));
  tell::after_holds();
}

void outlive(const Task& task) noexcept {
  tell::after(&task.event);
  tell::after(&task.references);
}

}  // namespace imbrex::sched::task_races
