// SPDX-License-Identifier: BSD-3-Clause
// The end of a task: its event fires, its accesses end, and its scope counts it; and the holds that
// delay such an end.
#pragma once

#include <cstdint>

#include "task/descriptor.hpp"
#include "task/scope_counts.hpp"

namespace imbrex::task {

// Tasks of one scope that a worker has completed and not yet counted there. The worker may delay
// the count as long as its next task belongs to the same scope: code that waits for the scope waits
// for that task, too.
struct Tally {
  Scope* scope = nullptr;
  std::uint64_t amount = 0;
};
// Counts the tasks of the tally in their scope.
void flush(Tally& tally, Outcome& outcome) noexcept;

// The running `task`, once its body has ended, completes only after `event`. `hold` must live as
// long as the task.
void hold_completion(Task& task, EventWord& event, Hold& hold) noexcept;

// The scope `hold.scope` of the running `task` ends only after `event`: it counts the hold as a
// complete descendant. A finish() around the task, and the task's life, wait for the hold. With an
// address, the access to it stays open after the task's end until `event` fires. REQUIRES: such an
// access has been given to hold_access().
void hold_until(Task& task, EventWord& event, Hold& hold, Outcome& outcome) noexcept;

// Where the order is kept (trace/happens_before.hpp): the end of each hold precedes this key. One
// for all tasks, since holds are rare.
[[nodiscard]] const void* key_of_holds() noexcept;

// The body of `task` has ended and its closure is gone: true if no hold delays its completion.
[[nodiscard]] inline bool body_ended(Task& task) noexcept {
  if (!task.held()) [[likely]] return true;
  change_state(task, State::running, State::ended);
  return task.holds.fetch_sub(1, std::memory_order_acq_rel) == 1;  // pairs with the other holds
}

// Whether only the caller refers to `task`, whose body has ended, and the end involves no other
// object.
[[nodiscard]] inline bool is_unknown(const Task& task) noexcept {
  return task.references.load(std::memory_order_acquire) == 1 && task.accesses == nullptr &&
         task.family == nullptr && !task.held() && task.failure == nullptr;
}
// The end of such a task: counts it; the caller then owns the descriptor.
inline void complete_unknown(Task& task, Tally& tally, Outcome& outcome) noexcept {
  if (tally.scope != task.scope) [[unlikely]] {
    flush(tally, outcome);
    tally.scope = task.scope;
  }
  tally.amount += Scope::one_complete | Scope::one_deep;
}

// `task` is complete: fires its event, counts it in its scope, at once or in `tally`, and ends the
// lives that this ends.
void complete(Task& task, Tally& tally, Outcome& outcome) noexcept;

}  // namespace imbrex::task
