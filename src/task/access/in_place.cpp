// SPDX-License-Identifier: BSD-3-Clause
#include "task/access/in_place.hpp"

#include <sched.h>

namespace imbrex::task {

// Only a task that its parent runs, or may soon run, in place ends without atomic operations.
// Either the parent sees `shared`, or this function sees that it is about to end: the fences order
// the parent's store of `ends` and its load of `shared` against the store and the load here.
void share(detail::Completion& completion, const Task* const user) noexcept {
  if (!is_task(completion) || completion.event.has_fired()) return;
  auto& task = static_cast<Task&>(completion);
  if (task.accesses != nullptr || task.scope == nullptr || task.scope->owner == user) return;
  const State state = task.state.load(std::memory_order_acquire);  // pairs with run_in_place()
  if (state != State::created && state != State::ready &&
      task.in_place.load(std::memory_order_acquire) == detail::InPlace::no) {
    return;
  }
  task.shared.store(true, std::memory_order_seq_cst);
  base::heavy_fence();
  while (task.in_place.load(std::memory_order_acquire) == detail::InPlace::ends) sched_yield();
}

}  // namespace imbrex::task
