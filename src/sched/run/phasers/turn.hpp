// SPDX-License-Identifier: BSD-3-Clause
// The turn at a phaser (task/phases.hpp): the last signaller ends the phase, and completes the
// promises of its end. Used where tasks signal and where they leave.
#pragma once

#include "sched/run/runtime_state.hpp"
#include "task/phases.hpp"

namespace imbrex::sched {

// A promise of a phaser that is set at the end of a phase.
struct PassedPromise : detail::PromiseState {
  task::PhaseWait wait;
  task::Phases* phases;  // the phaser that it waits for; lives until the promise has fired
};

// A signal has been given: the caller has the turn if it was the last. Calls functions of
// accumulators, as callbacks.
void after_signal(Worker& worker, task::Phases& phases, task::phaser::Signal done,
                  task::Outcome& outcome) noexcept;
// The caller has the turn, and accumulators have been combined: the backend of the phaser says that
// the phase is over, or the function of a next(single) has run.
void end_accumulated_phase(Worker& worker, task::Phases& phases, bool single_has_run,
                           task::Outcome& outcome) noexcept;
// Completes the promises of `end`.
void complete_promises(Worker& worker, task::PhaseEnd& end) noexcept;

}  // namespace imbrex::sched
