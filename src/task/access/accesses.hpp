// SPDX-License-Identifier: BSD-3-Clause
// The accesses of one task: what it may declare, how accesses are built and end, early release.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/slab.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "task/access_block.hpp"

namespace imbrex::task {

// Throws Error if one address is given with two kinds.
[[gnu::noinline]] void check_accesses(const char* name, std::span<const AccessSpec> specs);

// Builds the block of `task` in `memory`, of AccessBlock::bytes(specs.size()).
void build_accesses(Task& task, void* memory, std::span<const AccessSpec> specs) noexcept;

// The accesses of `task`, as build_accesses() takes them; none if it has no block.
[[nodiscard]] std::vector<AccessSpec> specs_of(const Task& task);

// Gives up what the block of a dead task owns, except its futures; call release_futures() first.
void destroy_accesses(Task& task, base::SlabCache& edges) noexcept;

// `task` starts, so its futures are no longer needed. Calls release(completion) for the reference
// of each.
template <class Release>
void release_futures(Task& task, Release release) noexcept {
  if ((task.accesses->marks & AccessBlock::futures) == 0) return;
  task.accesses->marks &= static_cast<std::uint8_t>(~AccessBlock::futures);
  for (const Access& access : task.accesses->accesses()) {
    if (access.kind != AccessKind::after) continue;
    release(*static_cast<detail::Completion*>(const_cast<void*>(access.address)));
  }
}

// `task` is complete, its event has fired, and its waiters, from `first` on, are not released yet:
// gives its mutexes to the next accesses, and its failures to the followers.
[[gnu::noinline]] void end_marked(Task& task, Waiter* first, ReadyList& ready) noexcept;
inline void end_accesses(Task& task, Waiter* const first, ReadyList& ready) noexcept {
  if (task.accesses->has_mark(AccessBlock::mutexes | AccessBlock::failed)) [[unlikely]] {
    end_marked(task, first, ready);
  }
}

// Whether `next` must still wait for an open access of `task`. REQUIRES: both declared accesses.
[[nodiscard]] bool blocks(Task& task, Task& next) noexcept;

// Adds the open accesses of the running `task`, for open_accesses() of plug_ins.hpp. REQUIRES: the
// task declared some.
void list_open(Task& task, std::vector<detail::OpenAccess>& open);

// Whether an access of the complete `task` is still open until its event fires. For reports: the
// values that it reads may be a moment old.
[[nodiscard]] bool holds_access(const Task& task) noexcept;

// Ends the access of the running `task` to `address`, or with `bytes` to that range. False if the
// task declared no such access.
[[nodiscard]] bool release_access(Task& task, const void* address, std::size_t bytes,
                                  Outcome& outcome) noexcept;

// Keeps the access of the running `task` to `address` open until end_hold(), as Releases does;
// false if there is no such access.
[[nodiscard]] bool hold_access(Task& task, const void* address, std::size_t bytes,
                               Outcome& outcome) noexcept;

[[noreturn]] void throw_not_declared(const char* what, const Task& task, const void* address,
                                     std::size_t bytes);

}  // namespace imbrex::task
