// SPDX-License-Identifier: BSD-3-Clause
// The actions of a thread that is outside: where no runtime runs any more, or where it may end at
// any time (visit.hpp).
#include <utility>

#include "sched/life/visit.hpp"
#include "sched/run/dead.hpp"
#include "task/event_word.hpp"
#include "task/joint.hpp"

namespace imbrex::sched {

namespace {

// Any thread may call this, because it may have become a worker in a destructor. `kept` is the
// result of take_from_end(). If that runtime has ended since, and another may run, the memory of
// `task` must not be reused: it is freed with its own runtime.
void give_back(Task& task, const RuntimeState* const kept) noexcept {
  const auto reuse_here = [&task, kept] {
    Worker& worker = *current_worker();
    if (kept == nullptr || worker.runtime == kept) reuse(worker, task);
  };
  if (!is_outside()) return reuse_here();  // perhaps another worker than before a destructor
  visit(Purpose::passes, reuse_here, [&task] {
    task.state.store(task::State::free, std::memory_order_relaxed);
    if (task.fiber != nullptr) forget_keeper(*static_cast<RuntimeState*>(task.fiber));
  });
}

// For a thread that is no worker, whose runtime may end while a destructor of the program runs. The
// dead `task` is hidden from that end, which would reduce it, too. The returned runtime, if it is
// not null, keeps its memory until forget_keeper().
RuntimeState* take_from_end(Task& task, task::Outcome& outcome) noexcept {
  return visit(Purpose::passes,
               [&]() -> RuntimeState* {
                 // the task has outlived its runtime
                 if (task.slot_class == 0 && task.fiber != nullptr) return nullptr;
                 Worker& worker = *current_worker();
                 worker.runtime->keepers.fetch_add(1, std::memory_order_relaxed);
                 task.state.store(task::State::free, std::memory_order_relaxed);
                 reduce(worker, task, outcome);
                 return worker.runtime;
               },
               []() -> RuntimeState* { return nullptr; });  // the end has reduced the task
}

void destroy_all_outside(task::Outcome& outcome) noexcept {
  while (Task* const dead = outcome.dead.pop()) {
    const bool result = has_result(*dead);
    RuntimeState* const kept = is_outside() ? take_from_end(*dead, outcome) : nullptr;
    destroy_contents(*dead, result, outcome);
    give_back(*dead, kept);
    if (kept != nullptr) forget_keeper(*kept);
  }
}

}  // namespace

void destroy_outside(detail::Completion& completion) noexcept {
  task::Outcome outcome;
  if (task::is_task(completion)) {
    outcome.dead.push(static_cast<Task&>(completion));
  } else {
    task::destroy_other(completion, outcome);
  }
  destroy_all_outside(outcome);
}

// Tasks that became ready never run: they were given up with their runtime. Threads resume.
static void act_on_after_end(task::Outcome& outcome) noexcept {
  while (Task* const ready = outcome.ready.pop()) {
    if (!ready->is_root() || ready->fiber == nullptr) continue;
    auto* const worker = static_cast<Worker*>(static_cast<fiber::Fiber*>(ready->fiber)->tied_to);
    if (worker->foreign()) worker->bell.notify();
  }
  destroy_all_outside(outcome);
}

void let_go_after_end(task::Waiter& first) noexcept {
  task::Outcome outcome;
  task::event::let_go_all(&first, outcome);
  act_on_after_end(outcome);
}

}  // namespace imbrex::sched
