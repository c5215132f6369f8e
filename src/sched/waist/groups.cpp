// SPDX-License-Identifier: BSD-3-Clause
// The waist's functions for threads that become workers, groups, and tasks that run where they are
// created.
#include "imbrex/detail/groups.hpp"
#include "imbrex/error.hpp"
#include "sched/life/visit.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/runtime_state.hpp"
#include "task/access/depend.hpp"
#include "task/access/in_place.hpp"

namespace imbrex::detail {

using sched::Worker;
using task::Task;

Group& take_group(const int size) {
  return sched::current_worker()->runtime->groups.take(size);
}

void give_group(Group& group) noexcept {
  if (sched::RuntimeState* const runtime = sched::runtime()) runtime->groups.give(group);
}

void join_group(Membership& place) noexcept {
  Worker& worker = *sched::current_worker();
  place.group->parkings[place.index].place.store(worker.id, std::memory_order_relaxed);
  place.outer = worker.membership;
  worker.serve(place);
}

void leave_group(Membership& place) noexcept {
  Worker& worker = *sched::current_worker();
  place.group->parkings[place.index].place.store(-1, std::memory_order_relaxed);
  if (worker.membership == &place) {
    worker.serve(*place.outer);
    return;
  }
  // Other code of this thread, on other stacks, has joined groups since and has not left them yet.
  Membership* inner = worker.membership;
  while (inner->outer != &place) inner = inner->outer;
  inner->outer = place.outer;
}

int place_in(const Group& group) noexcept {
  const Worker& worker = *sched::current_worker();
  for (const Membership* place = worker.membership; place != nullptr; place = place->outer) {
    if (place->group == &group) return place->index;
  }
  return -1;
}

void observe_switches(const SwitchOps& ops) noexcept {
  sched::notes::switch_ops.store(&ops, std::memory_order_release);
  sched::current_worker()->recorder.note_switches();
}

Interrupted interrupted() noexcept {
  Interrupted it;
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr) return it;
  const Task* const task = worker->stand_in != nullptr ? worker->interrupted : worker->task;
  if (task != nullptr) it.body = {task->ops, const_cast<Task*>(task)->closure()};
  if (!worker->membership->group->standing && worker->membership != &worker->home) {
    it.place = worker->membership;
  }
  return it;
}

void enter(void* const closure, Group* const group, Entered& entered) noexcept {
  Worker& worker = *sched::current_worker();
  Task& task = Task::of_closure(closure);
  entered = {worker.task, worker.fiber->tied_to};
  task::Scope& scope = *worker.task->family->current;
  scope.count_spawned();
  task.scope = &scope;
  task.reach = task::Reach::future;
  task.references.store(2, std::memory_order_relaxed);  // one of the run, one of this function
  task.pending.store(0, std::memory_order_relaxed);
  if (group != nullptr) task.group = group->id;
  task::change_state(task, task::State::created, task::State::running);
  worker.fiber->tied_to = &worker;
  worker.task = &task;
  worker.recorder.tasks.add(1);
  if (worker.recorder.watched()) sched::notes::enters(worker, task);
}

void leave(const Entered& entered) noexcept {
  Worker& worker = *sched::current_worker();
  Task& task = *worker.task;
  if (worker.recorder.watched()) sched::notes::leaves(worker, task);
  worker.fiber->tied_to = entered.tied_to;
  worker.task = static_cast<Task*>(entered.task);
  if (task::complete_alone(task, *worker.task)) {
    sched::drop_reference(worker, task);
    return;
  }
  task::Outcome outcome;
  task::Tally tally;
  if (task.family != nullptr && task.family->table != nullptr) task.family->table->clear(outcome);
  if (task::body_ended(task)) task::complete(task, tally, outcome);
  task::flush(tally, outcome);
  sched::act_on(worker, outcome);
  sched::drop_reference(worker, task);
}

}  // namespace imbrex::detail
