// SPDX-License-Identifier: BSD-3-Clause
// Accesses that name more than an address: which of them conflict, and how an entry for the end of
// an object or range stays behind the entry for its beginning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "task/access/interval_tree.hpp"
#include "task/access_block.hpp"

namespace imbrex::task {

// The memory that an access covers. REQUIRES: it names memory.
[[nodiscard]] inline Interval interval_of(const Access& access) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(access.address);
  if (access.bytes != 0) return {begin, begin + access.bytes};
  return {begin, reinterpret_cast<std::uintptr_t>((&access + 1)->address)};
}
[[nodiscard]] inline bool is_range(const Access& access) noexcept {
  return access.bytes == 0 && (&access + 1)->kind == AccessKind::range_end;
}

[[nodiscard]] inline bool is_set(const AccessKind kind) noexcept {
  return kind == AccessKind::mutexinoutset || kind == AccessKind::inoutset;
}

// Whether two accesses to one address must keep their order.
[[nodiscard]] inline bool conflict(const AccessKind first, const AccessKind second) noexcept {
  return first != second || !(first == AccessKind::in || is_set(first));
}

// conflict() for two accesses whose memory overlaps, but has different intervals: there is no
// common mutex, so accesses of a mutexinoutset keep their order, too.
[[nodiscard]] inline bool conflict_apart(const AccessKind first, const AccessKind second) noexcept {
  return conflict(first, second) || first == AccessKind::mutexinoutset;
}

// Whether `second`, whose version is or will be `version`, must stay behind `first`.
[[nodiscard]] inline bool conflict_by_range(const Access& first, const Access& second,
                                            const std::uint64_t version) noexcept {
  if (first.version() == Access::not_linked || version == Access::not_linked) return false;
  const Interval mine = interval_of(first);
  const Interval other = interval_of(second);
  if (!mine.overlaps(other)) return false;
  if (mine != other) return conflict_apart(first.kind, second.kind);
  // Accesses of two sets with a reader between them are no neighbours.
  return conflict(first.kind, second.kind) || (is_set(first.kind) && first.version() != version);
}

// The next two functions take an entry that is an access, not the end of one.
[[nodiscard]] inline bool is_range(const AccessSpec& spec) noexcept {
  return spec.bytes == 0 && (&spec + 1)->kind == AccessKind::range_end;
}
[[nodiscard]] inline const void* end_of(const AccessSpec& spec) noexcept {
  if (spec.bytes == 0) return (&spec + 1)->address;
  return static_cast<const std::byte*>(spec.address) + spec.bytes;
}

// Whether two entries of one task that begin at one address name the same object, so that they must
// not have two kinds. A range and an object in it may have two kinds.
[[nodiscard]] inline bool same_object(const AccessSpec& first, const AccessSpec& second) noexcept {
  if (first.kind >= AccessKind::object_end || second.kind >= AccessKind::object_end) return false;
  return (!is_range(first) && !is_range(second)) || end_of(first) == end_of(second);
}

// Sorts by address. An access and the entry for its end must stay neighbours.
inline void sort_with_ends(const std::span<Access> accesses) {
  struct Named {
    AccessSpec access, end;
  };
  std::vector<Named> all;
  for (const Access& access : accesses) {
    const AccessSpec spec{access.address, access.kind, access.bytes};
    if (access.kind < AccessKind::object_end) {
      all.push_back({spec, {}});
    } else {
      all.back().end = spec;
    }
  }
  std::ranges::stable_sort(all, {}, [](const Named& named) { return named.access.address; });
  Access* next = accesses.data();
  const auto put = [&next](const AccessSpec& spec) {
    next->address = spec.address;
    next->kind = spec.kind;
    next->bytes = spec.bytes;
    ++next;
  };
  for (const Named& named : all) {
    put(named.access);
    if (named.access.bytes == 0) put(named.end);
  }
}

}  // namespace imbrex::task
