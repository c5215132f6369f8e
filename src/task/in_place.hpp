// SPDX-License-Identifier: BSD-3-Clause
// A task that its parent runs in place, and ends without atomic operations; and how whoever else
// gets hold of its future keeps the parent from that.
#pragma once

#include "base/arch.hpp"
#include "task/descriptor.hpp"
#include "task/scope_counts.hpp"

namespace imbrex::task {

// The end of `task`, whose body has ended in its parent `parent` that waited for it and whose
// future nobody else holds: the same as complete() without atomic operations. False, and nothing
// done, if it has more to end than itself. REQUIRES: `parent` runs; a run's reference and
// `parent`'s.
//
// One future may be used by several tasks at a time, without a reference for each. Whoever is not
// the parent calls share() first: what this reads is then read again, or has been acted upon.
[[nodiscard, gnu::always_inline]] inline bool complete_alone(Task& task,
                                                              const Task& parent) noexcept {
  if (task.family != nullptr || task.accesses != nullptr || task.held() ||
      task.failure != nullptr ||
      task.scope->owner != &parent) {
    return false;
  }
  task.in_place.store(detail::InPlace::ends, std::memory_order_relaxed);
  base::light_fence();  // pairs with the heavy one of share()
  const bool alone = task.references.load(std::memory_order_acquire) == 2 &&
                     !task.shared.load(std::memory_order_relaxed);
  if (alone) [[likely]] {
    task.state.store(State::complete, std::memory_order_release);  // share() reads it
    task.scope->spawned -= Scope::one_complete | Scope::one_deep;
    task.references.store(1, std::memory_order_relaxed);
    task.event.head.store(detail::EventWord::fired, std::memory_order_release);
  }
  task.in_place.store(detail::InPlace::no, std::memory_order_release);
  return alone;
}

// `user`, which may be null, is about to wait for `completion`, to copy a future of it, or to make
// another completion follow it, by way of a future that may be somebody else's.
[[gnu::noinline]] void share(detail::Completion& completion, const Task* user) noexcept;

}  // namespace imbrex::task
