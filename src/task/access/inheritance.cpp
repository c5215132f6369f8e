// SPDX-License-Identifier: BSD-3-Clause
// The noinline functions of this file are called seldom, by the loop that runs tasks.
#include "task/access/inheritance.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include "base/spin_lock.hpp"
#include "task/access/conflicts.hpp"
#include "task/access/depend.hpp"
#include "task/access/releases.hpp"
#include "task/scope_counts.hpp"

namespace imbrex::task {

// The failures that a task has inherited, by the positions of its accesses.
struct Inherited {
  base::SpinLock lock;  // held to write, while the task waits; reads come after the last write
  std::unique_ptr<Failure*[]> by_access;  // causes, each with a reference, or null
};

namespace {

// The inherited failures; null if there are none.
[[nodiscard]] const Inherited* known_inherited(const AccessBlock& block) noexcept {
  const Rare* const rare = block.rare.load(std::memory_order_acquire);
  return rare == nullptr ? nullptr : rare->inherited.load(std::memory_order_acquire);
}

// Made by the first caller that needs it.
[[nodiscard]] Inherited& inherited_of(AccessBlock& block) noexcept {
  std::atomic<Inherited*>& inherited = rare_of(block).inherited;
  Inherited* present = inherited.load(std::memory_order_acquire);
  if (present != nullptr) return *present;
  auto created = std::make_unique<Inherited>();
  created->by_access = std::make_unique<Failure*[]>(block.count);
  if (inherited.compare_exchange_strong(present, created.get(), std::memory_order_acq_rel)) {
    return *created.release();
  }
  return *present;
}

// Compares by order of creation; a failure that belongs to no task comes first.
[[nodiscard]] bool is_before(const Failure& first, const Failure& second) noexcept {
  return first.who.id < second.who.id;
}

[[gnu::noinline]] void note(Access& access, Failure& cause) noexcept {
  AccessBlock& block = block_of(access);
  Inherited& all = inherited_of(block);
  Failure* dropped = nullptr;
  {
    const std::lock_guard guard(all.lock);
    Failure*& place = all.by_access[position_of(access)];
    if (place == nullptr || is_before(cause, *place)) {
      dropped = std::exchange(place, &share(cause));
    }
  }
  if (dropped != nullptr) drop(*dropped);
  block.mark(AccessBlock::failed);
}

// Whether `access`, of a later task, begins from the data that `earlier` has written or found.
[[nodiscard]] bool begins_from(const Access& access, const Access& earlier,
                               const std::uint32_t linked_at) noexcept {
  if (linked_at != 0) {
    if (!conflict_by_range(earlier, access, access.version())) return false;
    const std::uint32_t overwritten = earlier.overwritten();  // times may have begun again
    return overwritten == 0 || static_cast<std::int32_t>(overwritten - linked_at) >= 0;
  }
  const std::uint64_t own_writing = access.kind == AccessKind::in ? 0 : 1;
  return access.address == earlier.address &&
         access.version() - own_writing == earlier.version();
}

}  // namespace

[[gnu::noinline]] void fail_task(Task& task, Failure& failure) noexcept {
  set_failure(task, failure);
  if (task.accesses == nullptr) return;
  task.accesses->mark(AccessBlock::failed);
  if (task.parent == nullptr || task.parent->family == nullptr) return;
  if (task.parent->family->table != nullptr) task.parent->family->table->keep_failures();
}

Failure* carried(const Access& access) noexcept {
  switch (access.kind) {
    case AccessKind::in: {
      // The earlier access was complete before the task began, and is unchanged since. Among ranges
      // it is found where it was written, because a reader has other bounds.
      AccessBlock& block = block_of(const_cast<Access&>(access));
      if (block.linked_at != 0) return nullptr;
      const Inherited* const all = known_inherited(block);
      return all == nullptr ? nullptr : all->by_access[position_of(access)];
    }
    case AccessKind::out:
    case AccessKind::inout:
    case AccessKind::mutexinoutset:
    case AccessKind::inoutset: {
      Task& task = *access.edge.task;
      const Releases* const releases = releases_of(*task.accesses);
      if (Failure* const own = releases == nullptr ? nullptr : releases->failure_of(access)) {
        return &cause_of(*own);
      }
      if (access.end.load(std::memory_order_acquire) == End::early) return nullptr;
      Failure* const failure = task.failure;
      return failure == nullptr ? nullptr : &cause_of(*failure);
    }
    default: return nullptr;  // an access to everything only orders
  }
}

[[gnu::noinline]] Failure* inherited_by(Task& task) noexcept {
  const Inherited* const all = known_inherited(*task.accesses);
  if (all == nullptr) return nullptr;
  Failure* first = nullptr;
  for (std::size_t index = 0; index < task.accesses->count; ++index) {
    Failure* const one = all->by_access[index];
    if (one != nullptr && (first == nullptr || is_before(*one, *first))) first = one;
  }
  return first;
}

[[gnu::noinline]] void inherit(Access& access, const Access& earlier) noexcept {
  if (!inherits(access.kind)) return;
  if (Failure* const failure = carried(earlier)) note(access, *failure);
}

namespace {

// Whether `next`, a node that follows another one, does so in a later iteration: that one does not
// begin, and an instance of `next` may run now. Where no ranges are in use, versions tell it
// of the next round.
[[nodiscard]] bool follows_later(const Task& task, const Task& next) noexcept {
  if (task.accesses->node->offset != next.accesses->node->offset) return true;
  const std::uint32_t linked_at = task.accesses->linked_at;
  return linked_at != 0 && next.accesses->linked_at <= linked_at;
}

}  // namespace

[[gnu::noinline]] void pass_on(Task& task, Task& next, const bool fired) noexcept {
  if (next.accesses->has_mark(AccessBlock::repeats) && follows_later(task, next)) return;
  for (const Access& earlier : task.accesses->accesses()) {
    if (!fired && !earlier.has_ended()) continue;
    Failure* const failure = carried(earlier);
    if (failure == nullptr) continue;
    for (Access& access : next.accesses->accesses()) {
      if (inherits(access.kind) && begins_from(access, earlier, next.accesses->linked_at)) {
        note(access, *failure);
      }
    }
  }
}

[[gnu::noinline]] void forget_inherited(AccessBlock& block) noexcept {
  Rare* const rare = block.rare.load(std::memory_order_acquire);
  if (rare == nullptr) return;
  if (Releases* const releases = releases_of(block)) releases->forget_failures();
  const std::unique_ptr<Inherited> all(
      rare->inherited.exchange(nullptr, std::memory_order_acq_rel));
  if (all == nullptr) return;
  for (std::size_t index = 0; index < block.count; ++index) {
    if (all->by_access[index] != nullptr) drop(*all->by_access[index]);
  }
}

}  // namespace imbrex::task
