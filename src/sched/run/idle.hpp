// SPDX-License-Identifier: BSD-3-Clause
// Idle threads: workers, and waiting threads of the program.
#pragma once

#include "sched/run/polling.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// The worker looks for work, polls, and finally sleeps. Returns the next task, claimed; null only
// when the runtime stops.
[[nodiscard, gnu::noinline]] Task* idle(Worker& worker) noexcept;

// detail::may_spin(). Only for joined workers: there are as many other workers as processors.
[[nodiscard]] inline bool may_spin(Worker& worker, std::uint64_t& last) noexcept;
// Whether the system has given the processor of the calling thread, `worker`'s, to another thread
// since the last call.
[[gnu::cold, gnu::noinline]] bool lost_processor(Worker& worker) noexcept;

// A thread of the program waits until its bell is rung. Its worker has no loop, so the thread
// blocks. The awaited event may need polls, and the workers that would poll may wait for this
// thread, so the thread polls while no other thread does. `parked` is true while it touches nothing
// (life/visit.hpp).
[[gnu::cold, gnu::noinline]] void poll_until_rung(Worker& worker) noexcept;

// A wake-up is for one task, or for polls: the thread that wakes this worker wakes no other one. An
// idle worker that keeps a task for itself (Worker::keeps) wakes none either. Until such a worker
// has looked at everything after it announced its next sleep, it owes a wake-up
// (Worker::owes_wake_up). It pays before it turns to a task, or to a function of the program: it
// wakes a member of each of its groups that has ready tasks, and a sleeper to poll, if
// no thread polls. Hence no task stays ready, and no operation unpolled, while a worker sleeps
// (docs/design/wake-ups.md).
[[gnu::cold, gnu::noinline]] void pass_wake_up_on(Worker& worker) noexcept;
// A function of the program begins on this thread. An idle worker is no sleeper, and keeps no task,
// while the function runs, which may take long.
[[gnu::noinline]] void turn_to_program(Worker& worker) noexcept;

// This worker turns to a task, or blocks: a sleeping worker may have to poll in its place. A
// sleeper without a processor of its own would take this worker's, so none is woken if this worker
// was idle again soon after its last task.
inline void let_another_poll(Worker& worker) noexcept {
  RuntimeState& runtime = *worker.runtime;
  if (runtime.parking.asleep() == 0 || runtime.watched.load(std::memory_order_relaxed)) return;
  if (worker.back_at_once && runtime.oversubscribed.load(std::memory_order_relaxed)) return;
  if (runtime.polling(worker) != Polling::none) runtime.parking.wake_one();
}

// A long time between two looks alone says little: an interrupt, or another system on the same
// machine, may have taken it, and its owner then loses nothing by spinning.
inline bool may_spin(Worker& worker, std::uint64_t& last) noexcept {
  RuntimeState& runtime = *worker.runtime;
  const std::uint64_t now = base::ticks();
  if (last != 0 && now > last + runtime.displaced && lost_processor(worker)) [[unlikely]] {
    runtime.spin_again_at.store(now + 256 * runtime.displaced, std::memory_order_relaxed);
  }
  last = now;
  return now >= runtime.spin_again_at.load(std::memory_order_relaxed);
}

}  // namespace imbrex::sched
