// SPDX-License-Identifier: BSD-3-Clause
// Pollers: their list, the calls to them, and their share of the workers' time.
#pragma once

#include "imbrex/detail/plug_ins.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// Calls all pollers that have something outstanding; returns the number of completed operations.
// The caller updates RuntimeState::last_poll. `often`: the cost is measured only now and then,
// since two reads of the clock cost as much as a short poll.
constexpr int nothing_to_poll = -1;
// Busy workers spend a 50th of their time on polls; RuntimeState::poll_gap is so many polls long.
constexpr std::uint64_t polls_share = 50;
int poll(Worker& worker, bool often) noexcept;

// Calls the seek functions, which bring work from other ranks, for a worker that has found nothing
// here. True if a task has become ready.
[[nodiscard]] bool seek(Worker& worker) noexcept;

// Call it between two tasks of a busy worker. One of the workers that find a poll due polls.
inline void poll_if_due(Worker& worker, Polling polling) noexcept;

void add_poller(RuntimeState& runtime, detail::Poller& poller);
// Returns when no worker is in the poller any more.
void remove_poller(RuntimeState& runtime, detail::Poller& poller);
// An operation has become outstanding, and its caller goes on: wakes a thread that polls.
void wake_poller(Worker& worker) noexcept;
// Wakes a sleeping worker to poll, unless another worker polls.
void wake_watch(RuntimeState& runtime) noexcept;

// ---- bodies ----------------------------------------------------------------------------------

inline void poll_if_due(Worker& worker, const Polling polling) noexcept {
  RuntimeState& runtime = *worker.runtime;
  if (polling == Polling::none) {
    worker.attends = false;
    return;
  }
  std::uint64_t last = runtime.last_poll.load(std::memory_order_relaxed);
  const std::uint64_t now = base::ticks();
  if (polling == Polling::wanted &&
      now < last + runtime.poll_gap.load(std::memory_order_relaxed)) {
    return;
  }
  if (runtime.last_poll.compare_exchange_strong(last, now, std::memory_order_relaxed)) {
    if (worker.attends) runtime.note_polls_apart(now - std::min(last, now));
    worker.attends = true;
    poll(worker, false);
  }
}

}  // namespace imbrex::sched
