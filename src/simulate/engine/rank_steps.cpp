// SPDX-License-Identifier: BSD-3-Clause
// The tasks of a simulated rank that take steps: a task computes, creates tasks, sends, receives
// and waits in the order of its steps. What such a task begins without waiting for it is a task of
// the library, whose completion is a signal.
#include <span>
#include <utility>

#include "simulate/engine/closure.hpp"
#include "simulate/engine/rank.hpp"
#include "task/access/accesses.hpp"

namespace imbrex::simulate {

using task::Await;
using task::State;

void Rank::take_steps(Worker& worker) {
  Creator& creator = *worker.creator;
  if (creator.receives) {
    creator.receives = false;
    note_receive(*creator.task, creator.received);
  }
  while (creator.position < creator.steps->size()) {
    if (!take_step(worker, (*creator.steps)[creator.position])) return;
  }
  end_steps(worker);
}

bool Rank::take_step(Worker& worker, const TaskStep& step) {
  Creator& creator = *worker.creator;
  switch (step.act) {
    case Act::compute: {
      const Time time = time_of(static_cast<double>(step.amount) * setup_.slowness);
      sums_.in_task_ns += time;
      ++creator.position;
      return take_time(worker, time);
    }
    case Act::create: return create_task(worker, step);
    case Act::call: return call_operation(worker, step);
    case Act::begin: return begin_operation(worker, step);
    case Act::await: return await_signals(worker, step);
    case Act::close_scope: return close_scope(worker);
    case Act::await_all:
      return await_tasks(worker, step.number != 0 ? Await::descendants : Await::children);
    case Act::set: set_signal(worker.id, step.number); break;
    case Act::hold: hold(creator, step.number); break;
    case Act::release: release(worker, step); break;
    case Act::open_scope: open_scope(creator); break;
  }
  ++creator.position;
  return true;
}

// The task goes on after `time`, and after what the calls of the library take. Returns false.
bool Rank::take_time(Worker& worker, const Time time) {
  worker.stage = Stage::creates;
  at(events_.now() + time + std::exchange(worker.owed, 0), worker);
  return false;
}

bool Rank::create_task(Worker& worker, const TaskStep& step) {
  Creator& creator = *worker.creator;
  if (!creator.checked_ahead && gives_way(worker)) return false;
  creator.checked_ahead = false;
  ++creator.position;
  creator.batch.clear();
  program_.add_task(rank_, step.number, creator.batch);
  submit(worker.id, creator);
  sums_.overhead_ns += setup_.creator_ns;
  return take_time(worker, setup_.creator_ns);
}

// A blocking send or receive. A send first takes the time of its call.
bool Rank::call_operation(Worker& worker, const TaskStep& step) {
  Creator& creator = *worker.creator;
  creator.batch.clear();
  program_.add_operation(rank_, step.number, creator.batch);
  const TaskPlan plan = creator.batch.front();
  creator.batch.clear();
  const bool sends = plan.role == Role::send;
  if (sends && !std::exchange(creator.in_step, true)) {
    Time called = setup_.overhead_ns;
    if (plan.bytes <= setup_.eager_bytes) {
      called += time_of(static_cast<double>(plan.bytes) * setup_.copy_ns_per_byte);
    }
    sums_.overhead_ns += called;
    return take_time(worker, called);
  }
  creator.in_step = false;
  ++creator.position;
  Task& task = *creator.task;
  bool completes = false;
  if (sends) {
    note_send(task, plan);
    completes = mpi_.send(rank_, task, plan, policy_->urgency_of(task.priority.load(
                                                 std::memory_order_relaxed)));
  } else {
    creator.receives = true;
    creator.received = plan;
    sums_.overhead_ns += setup_.overhead_ns;
    completes = mpi_.receive(rank_, task, plan);
  }
  if (completes) return sends || take_time(worker, setup_.overhead_ns);
  if (!sends) creator.owed = setup_.overhead_ns;
  return leave_steps(worker, 1);
}

// The task leaves its worker until its `count` pending events have happened. Returns false.
bool Rank::leave_steps(Worker& worker, const int count) {
  Task& task = *worker.creator->task;
  task.fiber = this;  // any address: it was suspended
  task.pending.store(count, std::memory_order_relaxed);
  task::change_state(task, State::running, State::suspended);
  worker.stage = Stage::idle;
  worker.task = nullptr;
  worker.creator = nullptr;
  poll_if_due(worker);
  look(worker, false);
  return false;
}

// What the operation sends is as urgent as the task.
bool Rank::begin_operation(Worker& worker, const TaskStep& step) {
  Creator& creator = *worker.creator;
  ++creator.position;
  Batch& batch = library_->batch;
  batch.clear();
  program_.add_operation(rank_, step.number, batch);
  batch.give_priority(creator.task->priority.load(std::memory_order_relaxed));
  while (!batch.empty()) {
    if (batch.front().role == Role::send) note_send(*creator.task, batch.front());
    submit(worker.id, *library_);
  }
  return take_time(worker, 0);
}

bool Rank::await_signals(Worker& worker, const TaskStep& step) {
  Creator& creator = *worker.creator;
  const auto group = std::span(*creator.steps)
                         .subspan(creator.position, static_cast<std::size_t>(step.amount));
  creator.position += group.size();
  creator.waits.clear();  // those of the wait before, whose events have happened
  for (const TaskStep& one : group) {
    detail::Completion& awaited = signal(one.number);
    if (awaited.event.has_fired()) continue;
    task::Waiter& waiter = creator.waits.emplace_back();
    waiter.task = creator.task;
    (void)task::event::add(awaited.event, waiter);
  }
  return creator.waits.empty() || leave_steps(worker, static_cast<int>(creator.waits.size()));
}

bool Rank::await_tasks(Worker& worker, const Await what) {
  Creator& creator = *worker.creator;
  task::Scope& scope = *creator.family.current;
  if (!std::exchange(creator.in_step, false)) {
    if (!scope.finished_all(what)) {
      creator.in_step = true;
      leave_creator(worker, 0, what == Await::children ? Leaves::waits_for_children
                                                       : Leaves::waits_for_all);
      return false;
    }
    [[maybe_unused]] const bool over = scope.begin_wait(what);
    scope.awaiting = Await::nothing;
  }
  ++creator.position;
  return true;
}

void Rank::open_scope(Creator& creator) {
  task::Scope& scope = *creator.scopes.emplace_back(std::make_unique<task::Scope>());
  scope.owner = creator.task;
  scope.outer = creator.family.current;
  scope.finish = &scope;
  creator.family.current = &scope;
}

bool Rank::close_scope(Worker& worker) {
  Creator& creator = *worker.creator;
  if (!await_tasks(worker, Await::descendants)) return false;
  creator.family.current = creator.scopes.back()->outer;
  creator.scopes.pop_back();
  return true;
}

void Rank::hold(Creator& creator, const std::uint32_t number) {
  detail::Completion& awaited = signal(number);
  if (awaited.event.has_fired()) return;
  task::hold_completion(*creator.task, awaited.event, creator.holds.emplace_back());
}

void Rank::release(const Worker& worker, const TaskStep& step) {
  task::Outcome outcome;
  const auto address = static_cast<std::uintptr_t>(step.amount);
  (void)task::release_access(*worker.creator->task, reinterpret_cast<const void*>(address),
                             step.number, outcome);
  act_on(worker.id, outcome);
}

// Main waits for all tasks. Another task ends, though its tasks may still run.
void Rank::end_steps(Worker& worker) {
  Creator& creator = *worker.creator;
  if (&creator != main_.get()) return end(worker);
  creator.steps = nullptr;
  creator.created_all = true;
  creator.batch.clear();
  (void)refill(worker);
}

// ---- signals ---------------------------------------------------------------------------------

detail::Completion& Rank::signal(const std::uint32_t number) {
  detail::Completion*& named = signals_[number];
  if (named == nullptr) {
    named = &promises_.emplace_back();
    named->references.store(1, std::memory_order_relaxed);
    named->kind = detail::CompletionKind::promise;
    named->failure = nullptr;
  }
  return *named;
}

void Rank::set_signal(const int worker, const std::uint32_t number) {
  task::Outcome outcome;
  task::event::fire(signal(number).event, outcome);
  act_on(worker, outcome);
}

// The completion of the new `task` is the signal. If a task waits for the signal already, the
// completion sets the signal.
void Rank::name_signal(Task& task, const std::uint32_t number) {
  if (signals_[number] == nullptr) {
    signals_[number] = &task;
    task.reach = task::Reach::future;
    task.references.store(2, std::memory_order_relaxed);
    return;
  }
  Forward& forward = forwards_.emplace_back();
  forward.to = signals_[number];
  forward.notify = [](task::Waiter& waiter, task::Outcome&) noexcept -> task::Waiter* {
    task::Waiter* waiters = nullptr;
    (void)task::event::try_fire(static_cast<Forward&>(waiter).to->event, waiters);
    return waiters;
  };
  (void)task::event::add(task.event, forward);
}

// Fills `translated_` with `accesses`, in which signals have numbers; set ones are left out.
void Rank::translate_signals(const std::span<const detail::AccessSpec> accesses) {
  translated_.clear();
  for (const detail::AccessSpec& access : accesses) {
    if (access.kind != detail::AccessKind::after) {
      translated_.push_back(access);
      continue;
    }
    const auto number = reinterpret_cast<std::uintptr_t>(access.address);
    detail::Completion& awaited = signal(static_cast<std::uint32_t>(number));
    if (!awaited.event.has_fired()) translated_.emplace_back(&awaited, access.kind);
  }
}

void Rank::drop_signals() {
  for (detail::Completion* const completion : signals_) {
    if (completion != nullptr && task::is_task(*completion)) {
      drop_reference(static_cast<Task&>(*completion));
    }
  }
}

}  // namespace imbrex::simulate
