// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/phasers/turn.hpp"

#include <utility>

#include "sched/run/dead.hpp"
#include "sched/run/ready.hpp"
#include "trace/races.hpp"

namespace imbrex::sched {

using task::Outcome;
using task::PhaseEnd;
using task::Phases;

void settle_promises(Worker& worker, PhaseEnd& end) noexcept {
  while (end.promises != nullptr) {
    detail::PromiseState& promise = *end.promises->promise;
    end.promises = end.promises->next;  // read first: the wait is a part of the promise
    trace::races::before(&promise.event);
    task::event::fire(promise.event, end.outcome);
    drop_reference(worker, promise);
  }
}

namespace {

// Puts together what was put in the phase. False if what stands behind the phaser ends it later.
bool accumulate(Worker& worker, Phases& phases) noexcept {
  if (phases.accumulators != nullptr) {
    const char* const outer = std::exchange(worker.callback_call, accumulator_call);
    ++worker.callbacks;
    task::phaser::accumulate(phases);
    --worker.callbacks;
    worker.callback_call = outer;
  }
  if (phases.span == nullptr) return true;
  const bool over = task::phaser::parties(phases.word.load(std::memory_order_acquire)) == 0;
  return phases.span->last_signal(phases.phase.load(std::memory_order_relaxed), over);
}

// True if the caller has the turn of the next phase, too.
bool end_one_phase(Worker& worker, Phases& phases, Outcome& outcome) noexcept {
  PhaseEnd end{outcome};
  const task::phaser::Next next = task::phaser::end_phase(phases, end);
  settle_promises(worker, end);
  if (next != task::phaser::Next::open && phases.span != nullptr) {
    phases.span->first_signal(phases.phase.load(std::memory_order_relaxed));
  }
  return next == task::phaser::Next::over;
}

}  // namespace

void end_spanned_phase(Worker& worker, Phases& phases, Outcome& outcome) noexcept {
  if (end_one_phase(worker, phases, outcome)) end_phase(worker, phases, outcome);
}

void end_phase(Worker& worker, Phases& phases, Outcome& outcome) noexcept {
  while (accumulate(worker, phases) && end_one_phase(worker, phases, outcome)) {
  }
}

void after_signal(Worker& worker, Phases& phases, const task::phaser::Signal done,
                  Outcome& outcome) noexcept {
  if (done.first && phases.span != nullptr) {
    phases.span->first_signal(phases.phase.load(std::memory_order_relaxed));
  }
  if (!done.last) return;
  PhaseEnd end{outcome};
  if (task::phaser::hand_turn_on(phases, end)) return;
  end_phase(worker, phases, outcome);
}

}  // namespace imbrex::sched
