// SPDX-License-Identifier: BSD-3-Clause
#include "sched/waist/caller.hpp"

#include <fmt/format.h>

#include <new>

#include "imbrex/error.hpp"
#include "sched/life/life.hpp"
#include "sched/run/in_accumulator.hpp"
#include "sched/run/phasers/turn.hpp"
#include "sched/trigger/progress_functions.hpp"

namespace imbrex::detail {

std::string place_of_callback() {
  const char* const call = callback_call();
  return fmt::format("inside a callback that MPI makes while it progresses{}{}",
                     call == nullptr ? "" : ", in ", call == nullptr ? "" : call);
}

void refuse_to_wait(const char* const what) {
  const Worker* const worker = sched::current_worker();
  if (worker != nullptr && worker->calling != nullptr) {
    const std::source_location& where = worker->calling->spec.where;
    throw Error(fmt::format(
        "imbrex: {} inside the progress function registered at {}: no task runs there, so none "
        "can be suspended nor have children; test requests, call trigger(), and return",
        what, text_of(where)));
  }
  if (worker != nullptr && worker->callbacks == 0) {
    throw Error(fmt::format(
        "imbrex: {} outside of any task: this worker is between two tasks, so there is none that "
        "could be suspended",
        what));
  }
  if (worker != nullptr && worker->callback_call == sched::accumulator_call) {
    throw Error(fmt::format("imbrex: {} inside {}, which is called where no task runs: it must not "
                            "wait, nor spawn tasks",
                            what, sched::accumulator_call));
  }
  throw Error(fmt::format("imbrex: {} {}: no task runs there, so none can be suspended; let the "
                          "callback set a Promise, and wait for its future in a task",
                          what, place_of_callback()));
}

Worker& spawning_in_callback(Worker& worker, const char* const what) {
  const bool may_spawn = worker.callbacks != 0 && worker.calling == nullptr &&
                         worker.callback_call != sched::accumulator_call;
  if (!may_spawn) refuse_to_wait(what);
  if (worker.stand_in == nullptr) sched::begin_stand_in(worker);
  return worker;
}

void refuse_without_runtime(const char* const what) {
  if (sched::life().process.load(std::memory_order_relaxed) == 0) {
    throw Error(fmt::format("imbrex: {} before the runtime runs: spawn a task, open a finish scope "
                            "or make an imbrex::Runtime first",
                            what));
  }
  throw Error(fmt::format("imbrex: {} after the runtime has ended, and the awaited event has not "
                          "fired: let the imbrex::Runtime live until then, or start another one "
                          "(spawn a task, make an imbrex::Runtime) before the wait",
                          what));
}

void make_family(Worker& worker, Task& task) {
  void* const memory = worker.small.take(base::slab_class(sizeof(Family)));
  task.family = ::new (memory) Family;
  task.family->children.owner = &task;
  task.family->current = &task.family->children;
  if (task.scope == nullptr) return;
  task.family->children.finish = task.scope->finish;
  task.family->children.stop = task.scope->stop;
}

}  // namespace imbrex::detail
