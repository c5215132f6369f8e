// SPDX-License-Identifier: BSD-3-Clause
// Threads that have nothing to run: workers, and threads of the program's own that wait.
#pragma once

#include "sched/run/polling.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// The worker looks for work, polls, and sleeps at last. The next task, claimed; null only when the
// runtime stops.
[[nodiscard, gnu::noinline]] Task* idle(Worker& worker) noexcept;

// A thread of the program's own waits until its bell is rung. It has a worker without a loop, so it
// blocks; but what it waits for may need to be polled for, and who else would do that may wait for
// this thread: so it polls, while nobody else does. `parked` is true while it touches nothing
// (life/visit.hpp).
[[gnu::cold, gnu::noinline]] void poll_until_rung(Worker& worker) noexcept;

// This worker turns to a task, or blocks: a sleeping one may have to poll in its place. One without
// a processor of its own would take this one's, so not if this worker was back at once last time.
inline void let_another_poll(Worker& worker) noexcept {
  RuntimeState& runtime = *worker.runtime;
  if (runtime.parking.asleep() == 0 || runtime.watched.load(std::memory_order_relaxed)) return;
  if (worker.back_at_once && runtime.oversubscribed.load(std::memory_order_relaxed)) return;
  if (runtime.polling(worker) != Polling::none) runtime.parking.wake_one();
}

}  // namespace imbrex::sched
