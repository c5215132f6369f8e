// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/phasers/turn.hpp"

#include "sched/run/dead.hpp"
#include "sched/run/in_accumulator.hpp"
#include "sched/run/ready.hpp"
#include "trace/races.hpp"

namespace imbrex::sched {

using task::Outcome;
using task::PhaseEnd;
using task::Phases;

void complete_promises(Worker& worker, PhaseEnd& end) noexcept {
  while (end.promises != nullptr) {
    detail::PromiseState& promise = *end.promises->promise;
    end.promises = end.promises->next;  // read first: the wait is a part of the promise
    trace::races::before(&promise.event);
    task::event::fire(promise.event, end.outcome);
    drop_reference(worker, promise);
  }
}

namespace {

bool spans(const Phases& phases) noexcept {
  return phases.backend != nullptr && !phases.failed.load(std::memory_order_relaxed);
}

// Combines the values of the phase. False if the backend of the phaser ends the phase later.
bool accumulate(Worker& worker, Phases& phases) noexcept {
  const bool spanned = spans(phases);
  if (!spanned && phases.accumulators == nullptr) return true;
  const InAccumulator guard(worker);
  const std::uint64_t phase = phases.phase.load(std::memory_order_relaxed);
  const detail::PhaseFollows follows = task::phaser::what_follows(phases);
  if (spanned) return phases.backend->last_signal(phases, phase, phases.accumulators, follows);
  const bool over = follows != detail::PhaseFollows::yes;
  for (detail::AccumulatorBase* one = phases.accumulators; one != nullptr; one = one->following) {
    one->end_phase(phase, over);
  }
  return true;
}

// True if the caller has the turn of the next phase, too.
bool end_one_phase(Worker& worker, Phases& phases, const bool single_has_run,
                   Outcome& outcome) noexcept {
  using enum task::phaser::Next;
  const std::uint64_t following = phases.phase.load(std::memory_order_relaxed) + 1;
  PhaseEnd end{outcome};
  const task::phaser::Next next = task::phaser::end_phase(phases, single_has_run, end);
  complete_promises(worker, end);
  if (phases.backend == nullptr) return next == over;
  if (next == closed) {
    phases.backend->closed();
  } else if ((next == started || next == over) && phases.backend->early && spans(phases)) {
    phases.backend->first_signal(following, phases.accumulators);
  }
  return next == over;
}

}  // namespace

void end_accumulated_phase(Worker& worker, Phases& phases, const bool single_has_run,
                           Outcome& outcome) noexcept {
  if (!end_one_phase(worker, phases, single_has_run, outcome)) return;
  while (accumulate(worker, phases) && end_one_phase(worker, phases, false, outcome)) {
  }
}

void after_signal(Worker& worker, Phases& phases, const task::phaser::Signal done,
                  Outcome& outcome) noexcept {
  if (done.first && phases.backend != nullptr && phases.backend->early && spans(phases)) {
    phases.backend->first_signal(done.phase, phases.accumulators);
  }
  if (!done.last || !accumulate(worker, phases)) return;
  end_accumulated_phase(worker, phases, false, outcome);
}

}  // namespace imbrex::sched
