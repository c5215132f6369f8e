// SPDX-License-Identifier: BSD-3-Clause
// The turn at a phaser (task/phases.hpp): whoever has signalled last ends the phase, and completes
// the promises that it is over. Used where tasks signal and where they leave.
#pragma once

#include "sched/run/runtime_state.hpp"
#include "task/phases.hpp"

namespace imbrex::sched {

// A promise of a phaser's: that a phase is over.
struct PassedPromise : detail::PromiseState {
  task::PhaseWait wait;
  task::Phases* phases;  // that it waits for; there until it has fired
};

// A signal has been given: the caller has the turn if it was the last. Functions of accumulators
// are called, as callbacks.
void after_signal(Worker& worker, task::Phases& phases, task::phaser::Signal done,
                  task::Outcome& outcome) noexcept;
// The caller has the turn, and nobody shall run a function of next(single) any more.
void end_phase(Worker& worker, task::Phases& phases, task::Outcome& outcome) noexcept;
// The function of a next(single) has run; the caller has the turn still.
void end_after_single(Worker& worker, task::Phases& phases, task::Outcome& outcome) noexcept;
// What stands behind the phaser says that the phase is over: accumulators have been put together.
void end_spanned_phase(Worker& worker, task::Phases& phases, task::Outcome& outcome) noexcept;
// Completes the promises of `end`.
void complete_promises(Worker& worker, task::PhaseEnd& end) noexcept;

}  // namespace imbrex::sched
