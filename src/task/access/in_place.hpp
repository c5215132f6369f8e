// SPDX-License-Identifier: BSD-3-Clause
// A task that its parent runs in place, and ends without atomic operations; and how other users of
// its future prevent that.
#pragma once

#include "base/arch.hpp"
#include "task/descriptor.hpp"
#include "task/scope_counts.hpp"

namespace imbrex::task {

// Ends `task`, whose body has ended in its parent `parent`; only `parent` holds its future, and
// waits for it. Equivalent to complete(), without atomic operations. Returns false, and does
// nothing, if the end involves more than the task itself. REQUIRES: `parent` runs; the task has the
// reference of its run and `parent`'s.
//
// Several tasks may use one future at a time without a reference for each. Other tasks than the
// parent call share() first; this function then reads `shared` again, or share() waits for it.
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

// `user`, which may be null, is about to use a future of `completion` that may belong to another
// task: to wait for it, copy it, or let another completion follow it.
[[gnu::noinline]] void share(detail::Completion& completion, const Task* user) noexcept;

}  // namespace imbrex::task
