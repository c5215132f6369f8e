// SPDX-License-Identifier: BSD-3-Clause
#include "sched/lineage.hpp"

#include "sched/observe/observe.hpp"
#include "sched/runtime.hpp"

namespace imbrex::sched::lineage {

namespace {

template <class Act>
void apply(Worker& worker, Act act) {
  task::Outcome outcome;
  act(worker.runtime->lineage, outcome);
  if (!outcome.dead.empty()) settle(worker, outcome);
}

// How long the body of `task` has run that ends now; 0 if it did not run in one piece.
std::uint64_t time_of(const Worker& worker, const Task& task) noexcept {
  const Worker::Begun& begun = worker.begun;
  if (begun.task != task.id || begun.suspensions != worker.recorder.suspensions.get()) return 0;
  const std::uint64_t ticks = base::ticks() - begun.at;
  return 1 + ticks * 500 / worker.runtime->brief;  // which is 500 ns
}

}  // namespace

void mark(Worker& worker, Task& task) noexcept {
  task::Lineage& lineage = worker.runtime->lineage;
  lineage.mark(task);
  if (!lineage.flow().learns) return;
  apply(worker, [&](task::Lineage&, task::Outcome& outcome) { lineage.remember(task, outcome); });
}

void begins(Worker& worker, Task& task) noexcept {
  if (worker.recorder.tracing()) observe::begin(worker, task);
  apply(worker, [&](task::Lineage& lineage, task::Outcome& outcome) {
    lineage.begins(task, outcome);
  });
  if (notes_end(worker, task)) {
    worker.begun = {task.id, worker.recorder.suspensions.get(), base::ticks()};
  }
}

void enters(Worker& worker, Task& task) noexcept {
  if (worker.runtime->lineage.marks()) worker.runtime->lineage.mark(task);
  begins(worker, task);
}

void wait(Worker& worker, detail::Completion& other) {
  if (other.event.has_fired()) return;
  apply(worker, [&](task::Lineage& lineage, task::Outcome& outcome) {
    lineage.wait(*worker.task, other, worker.small, outcome);
  });
}

void waited(Worker& worker) noexcept {
  Task& task = *worker.task;
  if (!worker.runtime->lineage.flow().control || task.accesses == nullptr) return;
  task::end_lineage(task, worker.small, [&](Task& done) { drop_reference(worker, done); });
}

void hold(Worker& worker, detail::Completion& other) noexcept {
  apply(worker, [&](task::Lineage& lineage, task::Outcome& outcome) {
    lineage.hold(*worker.task, other, outcome);
  });
}

task::Step ends(Worker& worker, Task& task) noexcept {
  if (worker.recorder.tracing()) {
    worker.recorder.record(trace::Kind::task_end, task.id, 0, 0, 0);
  }
  return worker.runtime->lineage.ends(task, time_of(worker, task));
}

void follow(Worker& worker, const task::Step& step, const task::Outcome& outcome) noexcept {
  if (step.trail == 0) return;
  worker.runtime->lineage.follow(step, outcome.ready);
  worker.runtime->lineage.leave(step);
}

void catch_up(Worker& worker) noexcept {
  apply(worker, [](task::Lineage& lineage, task::Outcome& outcome) { lineage.catch_up(outcome); });
}

}  // namespace imbrex::sched::lineage
