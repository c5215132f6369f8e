// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/loop/destructors.hpp"

#include "sched/run/dead.hpp"
#include "sched/run/loop/waiting.hpp"
#include "task/joint.hpp"

namespace imbrex::sched {

void run_destructors(void* const rest) {
  const auto& mine = *static_cast<const Dead::Rest*>(rest);
  task::Outcome outcome;
  outcome.dead = mine.tasks;
  if (mine.other != nullptr) task::destroy_other(*mine.other, outcome);
  destroy_all(outcome);
  static constexpr detail::WaitReason reason{.kind = detail::WaitKind::children};
  if (task::Family* const family = current_worker()->task->family) {
    await_descendants(*family, reason);
  }
  current_worker()->runtime->dead.ended();
}

void await_destructors() noexcept {
  static constexpr detail::WaitReason reason{.kind = detail::WaitKind::end};
  for (;;) {
    detail::EventWord none_left;
    if (!current_worker()->runtime->dead.await(none_left)) return;
    wait_for(*current_worker(), none_left, reason);
  }
}

}  // namespace imbrex::sched
