// SPDX-License-Identifier: BSD-3-Clause
// The order that accesses give to siblings, as keys: an access comes after all ended accesses with
// the keys that it follows. Edges of the graph would not do, since none leads to a task that had
// ended before. Used by what tells ThreadSanitizer the order of tasks, and by what keeps it for
// IMBREX_CHECK; docs/design/races.md has the argument.
//
// `Tell` has after(key) and before(key) for the running task, after_end(completion), and two
// questions: has_ranges(), whether accesses to ranges may follow, and mutexes_order(), whether
// neighbours of a mutexinoutset are in the order in which they ran.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "task/access/conflicts.hpp"
#include "task/access_block.hpp"

namespace imbrex::task::order_keys {

// Accesses of one class conflict with the same other accesses. all, any: accesses to everything.
enum class Class : std::uint8_t { reads, writes, mutexes, sets, all, any };

[[nodiscard]] inline Class class_of(const AccessKind kind) noexcept {
  switch (kind) {
    case AccessKind::in: return Class::reads;
    case AccessKind::mutexinoutset: return Class::mutexes;
    case AccessKind::inoutset: return Class::sets;
    case AccessKind::everything: return Class::all;
    default: return Class::writes;
  }
}

// The key of the accesses of siblings to a place. Two keys may be equal, seldom: an order is then
// seen that does not exist.
[[nodiscard]] inline const void* key_of(const Task& task, const void* const place,
                                        const Class kind) noexcept {
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
inline constexpr unsigned digit = 3;
inline constexpr unsigned bits_max = 48;

[[nodiscard]] inline const void* itself(const std::uintptr_t begin, const unsigned bits) noexcept {
  return reinterpret_cast<const void*>((begin >> bits << bits) |
                                       (std::uintptr_t{2 * bits + 1} << 56));
}
[[nodiscard]] inline const void* within(const std::uintptr_t begin, const unsigned bits) noexcept {
  return reinterpret_cast<const void*>((begin >> bits << bits) |
                                       (std::uintptr_t{2 * bits + 2} << 56));
}

// Calls visit(begin, bits) for the largest blocks that cover the interval.
template <class Visit>
void each_block(const Interval covered, Visit visit) {
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
  each_block(interval_of(access), [&](const std::uintptr_t begin, unsigned bits) {
    visit(within(begin, bits));
    while ((bits += digit) < bits_max) visit(itself(begin, bits));
  });
}

// The reverse: for all places under which other accesses look.
template <class Visit>
void each_covered(const Access& access, Visit visit) {
  each_block(interval_of(access), [&](const std::uintptr_t begin, unsigned bits) {
    visit(itself(begin, bits));
    for (; bits < bits_max; bits += digit) visit(within(begin, bits));
  });
}

// ---- accesses --------------------------------------------------------------------------------

template <class Tell>
void follow_others(const Task& task, const Access& access, Tell& tell) noexcept {
  const AccessKind kind = access.kind;
  if (kind == AccessKind::after) {
    tell.after_end(*static_cast<const detail::Completion*>(access.address));
  }
  if (kind == AccessKind::everything) tell.after(key_of(task, nullptr, Class::any));
  if (!names_memory(kind)) return;
  const Class own = class_of(kind);
  const bool apart = own == Class::reads || own == Class::sets ||
                     (own == Class::mutexes && !tell.mutexes_order());
  const auto follow = [&](const void* const place) {
    for (const Class other : {Class::reads, Class::writes, Class::mutexes, Class::sets}) {
      if (other != own || !apart) tell.after(key_of(task, place, other));
    }
  };
  follow(access.address);
  if (task.accesses->linked_at != 0) each_overlapping(access, follow);
}

template <class Tell>
void precede_others(const Task& task, const Access& access, Tell& tell) noexcept {
  if (access.kind == AccessKind::everything) tell.before(key_of(task, nullptr, Class::all));
  if (!names_memory(access.kind)) return;
  const auto precede = [&](const void* const place) {
    tell.before(key_of(task, place, class_of(access.kind)));
  };
  precede(access.address);
  if (tell.has_ranges()) each_covered(access, precede);  // a later sibling may name a range
}

// `task` begins: after all predecessors of its accesses, and after siblings that access everything.
template <class Tell>
void begin(const Task& task, Tell tell) noexcept {
  if (task.accesses == nullptr) return;
  for (const Access& access : const_cast<Task&>(task).accesses->accesses()) {
    follow_others(task, access, tell);
  }
  tell.after(key_of(task, nullptr, Class::all));
}

// The body of `task` has ended.
template <class Tell>
void end(const Task& task, Tell tell) noexcept {
  if (task.accesses == nullptr) return;
  for (const Access& access : const_cast<Task&>(task).accesses->accesses()) {
    const bool early = access.end.load(std::memory_order_relaxed) == End::early;
    if (!early) precede_others(task, access, tell);
  }
  tell.before(key_of(task, nullptr, Class::any));
}

// The running task ends its access to `address` early, or with `bytes` to that range.
template <class Tell>
void release(const Task& task, const void* const address, const std::size_t bytes,
             Tell tell) noexcept {
  if (task.accesses == nullptr) return;
  for (const Access& access : const_cast<Task&>(task).accesses->accesses()) {
    if (access.address != address || !names_memory(access.kind)) continue;
    const Interval covered = interval_of(access);
    if (bytes == 0 || covered.end - covered.begin == bytes) precede_others(task, access, tell);
  }
}

// ---- waits -----------------------------------------------------------------------------------

// The key for a wait for children.
[[nodiscard]] inline const void* key_of_children(const Scope& scope) noexcept {
  return &scope.finished;
}
// The key for a wait for descendants: one for each finish(), and one for all code outside of any.
[[nodiscard]] inline const void* key_of_descendants(const Scope& scope) noexcept {
  static char nobody;
  return scope.finish != nullptr ? static_cast<const void*>(&scope.finish->spawned) : &nobody;
}

}  // namespace imbrex::task::order_keys
