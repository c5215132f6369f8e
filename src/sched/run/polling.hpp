// SPDX-License-Identifier: BSD-3-Clause
// Pollers: the list of them, the calls to them, and what share of the workers' time these get.
#pragma once

#include "imbrex/detail/plug_ins.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// Calls all pollers that have something outstanding; how many operations completed. The caller
// keeps RuntimeState::last_poll. `often`: the cost is measured now and then only, since two looks
// at the clock cost as much as a short poll.
constexpr int nothing_to_poll = -1;
int poll(Worker& worker, bool often) noexcept;

// Asks what brings work from elsewhere, for a worker that has found nothing here. True if something
// has become ready.
[[nodiscard]] bool seek(Worker& worker) noexcept;

// To be called between two tasks of a busy worker. Of the workers that find a poll due, one polls.
inline void poll_if_due(Worker& worker, Polling polling) noexcept;

void add_poller(RuntimeState& runtime, detail::Poller& poller);
// Returns when no worker is in it any more.
void remove_poller(RuntimeState& runtime, detail::Poller& poller);
// Something has become outstanding by a caller that goes on: somebody shall look after it.
void wake_poller(Worker& worker) noexcept;
// A sleeping worker shall look whether there is something to poll, unless another one does.
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
