// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/dead.hpp"

#include <mutex>
#include <new>
#include <utility>

#include "sched/run/in_accumulator.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/task_races.hpp"
#include "task/access/depend.hpp"
#include "task/access/inheritance.hpp"
#include "task/ending/instance.hpp"
#include "task/joint.hpp"

namespace imbrex::sched {

using task::Outcome;
using task::State;

namespace {

// Its destruction runs no code of the program that may wait.
[[nodiscard]] bool is_plain(const detail::Completion& completion) noexcept {
  using enum detail::CompletionKind;
  if (completion.kind == named || completion.kind == phase) return true;
  return (completion.kind == promise || completion.kind == phaser) &&
         completion.failure == nullptr &&
         static_cast<const detail::PromiseState&>(completion).plain;
}

void drop_holds(Task& task, Outcome& outcome) noexcept {
  if (task.family == nullptr) return;
  for (task::Hold* hold = task.family->holds; hold != nullptr; hold = hold->following) {
    detail::Completion* const source = std::exchange(hold->source, nullptr);
    if (source == nullptr || !task::drop(*source)) continue;
    if (task::is_task(*source)) {
      outcome.dead.push(static_cast<Task&>(*source));
    } else {
      task::destroy_other(*source, outcome);
    }
  }
  if (task.family->children.failures != nullptr) task.family->children.end_log();
}

void give_back_family(Worker& worker, Task& task) noexcept {
  if (task.family == nullptr) return;
  for (task::Hold* hold = std::exchange(task.family->holds, nullptr); hold != nullptr;) {
    worker.small.give(std::exchange(hold, hold->following), base::slab_class(sizeof(task::Hold)));
  }
  (void)give_back_if_plain(worker, *task.family);
}

// Gives back all parts of `task` except its result and its own memory.
void give_back_parts(Worker& worker, Task& task) noexcept {
  if (task.accesses != nullptr) task::destroy_accesses(task, worker.small);
  give_back_family(worker, task);
}

}  // namespace

bool has_result(const Task& task) noexcept {
  return task.ops != nullptr && task.ops->destroy != nullptr &&
         task.state.load(std::memory_order_relaxed) == State::complete &&
         (task.failure == nullptr || (task.held() && task.failed_late));
}

void destroy_contents(Task& task, const bool result, Outcome& outcome) noexcept {
  task_races::outlive(task);
  if (result) task.ops->destroy(task.closure());
  if (task.failure != nullptr) task::drop(*std::exchange(task.failure, nullptr));
  if (task.accesses != nullptr) task::forget_inherited(*task.accesses);
  drop_holds(task, outcome);
}

void forget_keeper(RuntimeState& runtime) noexcept {
  if (runtime.keepers.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &runtime;
}

bool give_back_if_plain(Worker& worker, task::Family& family) noexcept {
  if (family.holds != nullptr || family.children.failures != nullptr) return false;
  delete family.table;
  family.~Family();
  worker.small.give(&family, base::slab_class(sizeof(task::Family)));
  return true;
}

void recycle_rare(Worker& worker, Task& task) noexcept {
  if (task.fiber != nullptr) return forget_keeper(*static_cast<RuntimeState*>(task.fiber));
  worker.runtime->task_slots.give_large(&task);
}

void renew(Worker& worker, Task& task) noexcept {
  task.family = nullptr;
  Outcome outcome;
  task::begin_again(task, outcome);
  act_on(worker, outcome);
}

void reuse(Worker& worker, Task& task) noexcept {
  if (task::is_node(task)) [[unlikely]] {
    give_back_family(worker, task);
    return renew(worker, task);
  }
  give_back_parts(worker, task);
  recycle(worker, task);
}

void reduce(Worker& worker, Task& task, Outcome& outcome) noexcept {
  if (task.accesses != nullptr) task::forget_inherited(*task.accesses);
  drop_holds(task, outcome);
  give_back_parts(worker, task);
  // A foreign thread that copies a future of a task may just read that the task has no accesses.
  if (task.accesses != nullptr) task.accesses = nullptr;
  if (task.family != nullptr) task.family = nullptr;
}

void reduce_to_result(Worker& worker, Task& task) noexcept {
  Outcome outcome;
  reduce(worker, task, outcome);
  destroy_all(outcome);
}

void destroy_all(Outcome& outcome) noexcept {
  while (Task* const dead = outcome.dead.pop()) {
    destroy_contents(*dead, has_result(*dead), outcome);
    reuse(*current_worker(), *dead);  // perhaps another worker than before a destructor
  }
}

void destroy(detail::Completion& completion) noexcept {
  Outcome outcome;
  if (task::is_task(completion)) {
    outcome.dead.push(static_cast<Task&>(completion));
  } else {
    task::destroy_other(completion, outcome);
  }
  destroy_all(outcome);
}

bool may_wait(const Worker& worker) noexcept {
  return worker.task != nullptr && worker.callbacks == 0 &&
         !worker.in_poller.load(std::memory_order_relaxed) &&
         worker.task->state.load(std::memory_order_relaxed) == State::running;
}

void leave_to_task(Worker& worker, const task::ReadyList dead) noexcept {
  worker.runtime->dead.queue(worker, dead, nullptr);
}

void discard(Worker& worker, detail::Completion& completion) noexcept {
  if (task::is_task(completion)) {
    auto& task = static_cast<Task&>(completion);
    if (reuse_if_plain(worker, task)) return;
    task::ReadyList list;
    list.push(task);
    leave_to_task(worker, list);
  } else if (is_plain(completion)) {
    Outcome nothing;
    if (completion.kind == detail::CompletionKind::phaser) {
      const InAccumulator guard(worker);
      return task::destroy_other(completion, nothing);
    }
    task::destroy_other(completion, nothing);
  } else {
    worker.runtime->dead.queue(worker, {}, &completion);
  }
}

void drop_reference(Worker& worker, detail::Completion& completion) noexcept {
  if (task::drop(completion)) discard(worker, completion);
}

Worker& destroy_result(Worker& worker, Task& task) noexcept {
  static constexpr detail::BodyOps without_result{nullptr, nullptr, nullptr};
  worker.task = &task;
  if (task.tied) worker.fiber->tied_to = &worker;
  worker.recorder.enter(trace::Activity::task);
  {
    const trace::races::Inside known(task.name);
    task_races::outlive(task);
    task_races::call(task.ops->destroy, task.closure());
  }
  task.ops = &without_result;
  Worker& now = *current_worker();
  now.fiber->tied_to = nullptr;
  now.task = nullptr;
  now.recorder.enter(trace::Activity::overhead);
  return now;
}

// ---- by a task -------------------------------------------------------------------------------

Dead::Dead(void (*const run)(void* rest)) noexcept : ops_{run, nullptr, nullptr} {
  parent_.references.store(1, std::memory_order_relaxed);
  parent_.root.store(true, std::memory_order_relaxed);
  parent_.failure = nullptr;
  parent_.scope = nullptr;
  parent_.family = nullptr;
  parent_.name = "nobody";
  parent_.state.store(State::running, std::memory_order_relaxed);
  scope_.owner = &parent_;
  scope_.finished.store(-(task::Scope::one_complete | task::Scope::one_deep),
                        std::memory_order_relaxed);
}

void Dead::queue(Worker& worker, const task::ReadyList tasks,
                 detail::Completion* const other) noexcept {
  constexpr std::size_t bytes = sizeof(Task) + sizeof(Rest);
  constexpr std::size_t slot_class = trace::races::shown ? 0 : base::slab_class(bytes);
  void* const memory = slot_class == 0 ? worker.runtime->task_slots.take_large(bytes)
                                       : worker.tasks.take(slot_class);
  auto& task = *static_cast<Task*>(memory);
  task::initialise(task, {.id = worker.runtime->next_id.fetch_add(1, std::memory_order_relaxed),
                          .name = "destructors of results",
                          .where = tasks.empty() ? std::source_location() : tasks.head->where,
                          .ops = &ops_,
                          .parent = &parent_,
                          .scope = &scope_,
                          .priority = 0,
                          .group = 0,
                          .slot_class = slot_class,
                          .tied = worker.ties_all});
  task.pending.store(0, std::memory_order_relaxed);
  task.profile = 0;
  task.reach = task::Reach::entry;
  ::new (task.closure()) Rest{tasks, other};
  {
    const std::lock_guard guard(lock_);
    ++count_;
  }
  scope_.finished.fetch_sub(task::Scope::one_complete | task::Scope::one_deep,
                            std::memory_order_relaxed);
  task_races::spawn(task);
  notes::creation_by_library(worker, task);
  enqueue(worker, task, Origin::released);
}

void Dead::ended() noexcept {
  detail::EventWord* awaiting = nullptr;
  {
    const std::lock_guard guard(lock_);
    if (--count_ == 0) awaiting = std::exchange(awaiting_, nullptr);
  }
  if (awaiting != nullptr) fire(*current_worker(), *awaiting);
}

bool Dead::await(detail::EventWord& none_left) noexcept {
  const std::lock_guard guard(lock_);
  if (count_ == 0) return false;
  awaiting_ = &none_left;
  return true;
}

}  // namespace imbrex::sched
