// SPDX-License-Identifier: BSD-3-Clause
// Idle threads: workers, and waiting threads of the program.
#pragma once

#include "sched/run/polling.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// The worker looks for work, polls, and finally sleeps. Returns the next task, claimed; null only
// when the runtime stops.
[[nodiscard, gnu::noinline]] Task* idle(Worker& worker) noexcept;

// A thread of the program waits until its bell is rung. Its worker has no loop, so the thread
// blocks. The awaited event may need polls, and the workers that would poll may wait for this
// thread, so the thread polls while no other thread does. `parked` is true while it touches nothing
// (life/visit.hpp).
[[gnu::cold, gnu::noinline]] void poll_until_rung(Worker& worker) noexcept;

// This worker turns to a task, or blocks: a sleeping worker may have to poll in its place. A
// sleeper without a processor of its own would take this worker's, so none is woken if this worker
// was idle again soon after its last task.
inline void let_another_poll(Worker& worker) noexcept {
  RuntimeState& runtime = *worker.runtime;
  if (runtime.parking.asleep() == 0 || runtime.watched.load(std::memory_order_relaxed)) return;
  if (worker.back_at_once && runtime.oversubscribed.load(std::memory_order_relaxed)) return;
  if (runtime.polling(worker) != Polling::none) runtime.parking.wake_one();
}

}  // namespace imbrex::sched
