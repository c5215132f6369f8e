// SPDX-License-Identifier: BSD-3-Clause
// The creators of a simulated rank: main, which creates the tasks of the program one after the
// other and waits for them, and tasks that do the same with tasks of their own. And what the
// library sends and receives by itself.
#include <algorithm>
#include <new>
#include <utility>

#include "simulate/engine/closure.hpp"
#include "simulate/engine/rank.hpp"
#include "task/access/accesses.hpp"

namespace imbrex::simulate {

using task::State;

// The creator goes on: it creates one task, and the next after the time that this takes.
void Rank::create(Worker& worker) {
  flush(worker);
  Creator& creator = *worker.creator;
  if (creator.steps != nullptr) return take_steps(worker);
  if (creator.batch.empty() && !refill(worker)) return;
  if (!creator.checked_ahead && gives_way(worker)) return;
  creator.checked_ahead = false;
  submit(worker.id, creator);
  const Time busy = setup_.creator_ns + std::exchange(worker.owed, 0);
  sums_.overhead_ns += setup_.creator_ns;
  at(events_.now() + busy, worker);
}

// The body of `task` begins, which creates tasks.
void Rank::begin_creator(Worker& worker, Task& task, const TaskPlan& plan) {
  auto creator = std::make_unique<Creator>(task);
  if (task.scope != nullptr) creator->family.children.finish = task.scope->finish;
  creator->worker = worker.id;
  creator->steps = program_.steps(rank_, plan.creates);
  if (creator->steps == nullptr) {
    program_.expand(rank_, plan, creator->batch);
    creator->created_all = true;
  }
  worker.creator = creator.get();
  worker.stage = Stage::creates;
  creators_.emplace(&task, std::move(creator));
}

// Its tasks are complete.
void Rank::end_creator(Worker& worker) {
  if (worker.creator != main_.get()) return end(worker);
  is_done_ = true;
  sums_.end = events_.now();
  look(worker, false);
}

// Gets the next tasks to create. False: the creator has ended, or waits.
bool Rank::refill(Worker& worker) {
  Creator& creator = *worker.creator;
  while (creator.batch.empty()) {
    if (const Time busy = creator.batch.take_time(); busy != 0) {
      sums_.overhead_ns += busy;
      at(events_.now() + busy, worker);
      return false;
    }
    if (creator.batch.take_wait_for_event()) {
      leave_creator(worker, 0, Leaves::waits_for_event);
      return false;
    }
    if (creator.batch.waits() || creator.created_all) {
      creator.batch.clear();
      if (!creator.family.current->finished_all(task::Await::descendants)) {
        wait_for_all(worker);
        return false;
      }
      [[maybe_unused]] const bool over =
          creator.family.current->begin_wait(task::Await::descendants);
      creator.family.current->awaiting = task::Await::nothing;
      if (creator.created_all) {
        end_creator(worker);
        return false;
      }
    }
    creator.batch.clear();
    creator.created_all = !program_.next(rank_, creator.batch);
  }
  return true;
}

// True, and the creator has left its worker, if it is too far ahead of the tasks that it has
// created.
bool Rank::gives_way(Worker& worker) {
  Creator& creator = *worker.creator;
  if (++creator.family.unchecked <= window_) return false;
  const std::uint32_t live = creator.family.current->outstanding() - expected_;
  const auto workers = static_cast<std::uint32_t>(workers_.size());
  const auto ahead = sched::rules::look_ahead(live, window_, workers);
  creator.family.unchecked = ahead.unchecked;
  if (!ahead.gives_way || policy_->size() == 0) return false;
  creator.checked_ahead = true;
  leave_creator(worker, ahead.half_window, Leaves::ahead);
  return true;
}

void Rank::wait_for_all(Worker& worker) { leave_creator(worker, 0, Leaves::waits_for_all); }

// The creator leaves its worker. As in sched/run/loop/waiting.cpp the next task is found before the
// creator is known to wait.
void Rank::leave_creator(Worker& worker, const std::uint64_t half_window, const Leaves why) {
  Creator& creator = *worker.creator;
  Task& task = *creator.task;
  task.fiber = this;  // any address: it was suspended
  task.pending.store(1, std::memory_order_relaxed);
  task::change_state(task, State::running, State::suspended);
  worker.stage = Stage::idle;
  worker.task = nullptr;
  worker.creator = nullptr;
  poll_if_due(worker);
  Task* const next = seats_.must_leave(worker.id) ? nullptr : find_claimed(worker, false);
  const bool for_all = why == Leaves::waits_for_all;
  if (why == Leaves::ahead) {
    const auto ready = static_cast<std::uint64_t>(policy_->size());
    const std::size_t workers = workers_.size();
    if (task.tied) {
      worker.turn_of_others.expect(sched::rules::tasks_kept(half_window, workers), workers);
    }
    put_behind(worker, task, sched::rules::tasks_before(ready, half_window, workers));
  } else if (why != Leaves::waits_for_event &&
             creator.family.current->begin_wait(for_all ? task::Await::descendants
                                                        : task::Await::children)) {
    task.pending.store(0, std::memory_order_relaxed);
    task::change_state(task, State::suspended, State::resumable);
    enqueue(worker.id, task, sched::Origin::resumed);
  }
  if (next != nullptr) {
    run(worker, *next);
  } else {
    look(worker, false);
  }
}

void Rank::resume_creator() {
  root_.pending.store(0, std::memory_order_relaxed);
  task::change_state(root_, State::suspended, State::resumable);
  enqueue(sched::no_worker, root_, sched::Origin::resumed);
}

// Main stays with its worker; any worker goes on with a task.
void Rank::put_behind(Worker& worker, Task& task, const std::uint64_t before) {
  task.pending.store(0, std::memory_order_relaxed);
  task::change_state(task, State::suspended, State::resumable);
  const bool stays = task.tied || workers_.size() == 1;
  sched::rules::insert(stays ? worker.behind : behind_, {&task, begun_ + before});
  if (!stays) seats_.wake_one();
}

Task& Rank::make_task(const Creator& creator, const TaskPlan& plan, const std::size_t accesses) {
  const std::size_t bytes = sizeof(Task) + closure_bytes +
                            (accesses != 0 ? task::AccessBlock::bytes(accesses) : 0);
  const bool large = bytes > base::slab_bytes_max;
  const std::size_t slot_class = large ? 0 : base::slab_class(bytes);
  auto& task = *static_cast<Task*>(large ? task_slots_.take_large(bytes)
                                         : tasks_.take(slot_class));
  static constexpr std::source_location nowhere;
  task::initialise(task, {.id = next_id_++,
                          .name = kernels_[plan.kernel].name.c_str(),
                          .where = nowhere,
                          .ops = &ops_[plan.kernel],
                          .parent = creator.task,
                          .scope = creator.family.current,
                          .priority = plan.priority,
                          .group = 0,
                          .slot_class = static_cast<std::uint8_t>(slot_class),
                          .tied = plan.tied});
  ::new (task.closure()) Closure{plan};
  return task;
}

// The next task of the creator's batch.
void Rank::submit(const int worker, Creator& creator) {
  auto accesses = creator.batch.front_accesses();
  if (!signals_.empty()) {
    translate_signals(accesses);
    accesses = translated_;
  }
  const TaskPlan plan = creator.batch.front();
  Task& task = make_task(creator, plan, accesses.size());
  creator.batch.pop();
  creator.family.current->count_spawned();
  task.reach = task::Reach::entry;
  if (plan.by_library && plan.role == Role::protocol) ++expected_;
  if (plan.signal != 0) name_signal(task, plan.signal);
  ++sums_.created;
  sums_.live_most = std::max(sums_.live_most, sums_.created - sums_.ended);
  if (accesses.empty()) {
    task.pending.store(0, std::memory_order_relaxed);
    enqueue(worker, task, sched::Origin::forked);
    return;
  }
  if (creator.table == nullptr) {
    creator.table = std::make_unique<task::DependTable>(lineage_.marks() ? &lineage_ : nullptr);
  }
  void* const block = static_cast<std::byte*>(task.closure()) + closure_bytes;
  task::build_accesses(task, block, accesses);
  task::Outcome outcome;
  creator.table->reserve(task, outcome);
  if (creator.table->link(task, small_, outcome)) task::make_ready(task, outcome.ready);
  act_on(worker, outcome);
}

// ---- messages of the library -----------------------------------------------------------------

// `task` stands for one, whose accesses now allow it. The call takes time of `worker`, if there is
// one.
void Rank::post(const int worker, Task& task) {
  const TaskPlan& plan = plan_of(task);
  task.state.store(State::running, std::memory_order_relaxed);
  task::Outcome outcome;
  lineage_.begins(task, outcome);
  act_on(worker, outcome);
  Time called = setup_.overhead_ns;
  bool completes = false;
  if (plan.role == Role::send) {
    if (plan.bytes <= setup_.eager_bytes) {
      called += time_of(static_cast<double>(plan.bytes) * setup_.copy_ns_per_byte);
    }
    const int urgency = policy_->urgency_of(task.priority.load(std::memory_order_relaxed));
    completes = mpi_.send(rank_, task, plan, urgency);
  } else if (plan.role == Role::receive) {
    completes = mpi_.receive(rank_, task, plan);
  } else if (plan.role == Role::protocol) {
    completes = program_.call(rank_, task, plan);
    called = 0;  // it says that it waits, and sends nothing
  } else {
    completes = true;  // a join: it only orders other tasks
    called = 0;
  }
  if (worker != sched::no_worker) {
    workers_[static_cast<std::size_t>(worker)].owed += called;
    sums_.overhead_ns += called;
  }
  if (completes) return complete_posted(worker, task);
  task.fiber = this;
  task.pending.store(1, std::memory_order_relaxed);
  task::change_state(task, State::running, State::suspended);
}

void Rank::complete_posted(const int worker, Task& task) {
  if (plan_of(task).by_library && plan_of(task).role == Role::protocol) --expected_;
  task::Tally tally;
  task::Outcome outcome;
  if (task::body_ended(task)) task::complete(task, tally, outcome);
  task::flush(tally, outcome);
  ++sums_.ended;
  act_on(worker, outcome);
}

}  // namespace imbrex::simulate
