// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/phasers/leave.hpp"

#include "sched/run/dead.hpp"
#include "sched/run/phasers/turn.hpp"
#include "sched/run/ready.hpp"
#include "trace/races.hpp"

namespace imbrex::sched {

using task::Outcome;
using task::PhaseEnd;
using task::Phases;
using task::Registration;

void leave_phaser(Worker& worker, Registration*& link, Outcome& outcome) noexcept {
  Registration& mine = *link;
  link = mine.following;
  Phases& phases = *mine.phases;
  trace::races::before(&phases.word);
  PhaseEnd end{outcome};
  const bool last = task::phaser::leave(mine, end);
  mine.~Registration();
  worker.small.give(&mine, base::slab_class(sizeof(Registration)));
  if (last) after_signal(worker, phases, {false, true}, outcome);
  drop_reference(worker, phases);
}

void leave_phasers(Worker& worker, Task& task, const task::Scope* const finish,
                   Outcome& outcome) noexcept {
  for (Registration** link = &task.family->registrations; *link != nullptr;) {
    if (finish == nullptr || (*link)->phases->finish == finish) {
      leave_phaser(worker, *link, outcome);
    } else {
      link = &(*link)->following;
    }
  }
}

void leave_phasers(Task& task) noexcept {
  if (task.family == nullptr || task.family->registrations == nullptr) return;
  Outcome outcome;
  leave_phasers(*current_worker(), task, nullptr, outcome);
  act_on(*current_worker(), outcome);
}

}  // namespace imbrex::sched
