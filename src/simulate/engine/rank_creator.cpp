// SPDX-License-Identifier: BSD-3-Clause
// The creator of a simulated rank: main, which creates the tasks of the program one after the other
// and waits for them.
#include <algorithm>
#include <new>

#include "simulate/engine/closure.hpp"
#include "simulate/engine/rank.hpp"
#include "task/access/accesses.hpp"

namespace imbrex::simulate {

using task::State;

// Main goes on: it creates one task, and the next after the time that this takes.
void Rank::create(Worker& worker) {
  flush(worker);
  if (batch_.empty() && !refill(worker)) return;
  if (!checked_ahead_ && gives_way(worker)) return;
  checked_ahead_ = false;
  submit(batch_.front());
  batch_.pop();
  sums_.overhead_ns += setup_.creator_ns;
  at(events_.now() + setup_.creator_ns, worker);
}

// Gets the next tasks to create. False: main has ended, or waits.
bool Rank::refill(Worker& worker) {
  while (batch_.empty()) {
    if (batch_.waits() || created_all_) {
      batch_.clear();
      if (!family_.current->finished_all(task::Await::descendants)) {
        wait_for_all(worker);
        return false;
      }
      [[maybe_unused]] const bool over = family_.current->begin_wait(task::Await::descendants);
      family_.current->awaiting = task::Await::nothing;
      if (created_all_) {
        is_done_ = true;
        sums_.end = events_.now();
        look(worker, false);
        return false;
      }
    }
    batch_.clear();
    created_all_ = !program_.next(rank_, batch_);
  }
  return true;
}

// True, and main has left its worker, if it is too far ahead of the tasks that it has created.
bool Rank::gives_way(Worker& worker) {
  if (++family_.unchecked <= window_) return false;
  const auto ahead = sched::rules::look_ahead(family_.current->outstanding(), window_);
  family_.unchecked = ahead.unchecked;
  if (!ahead.gives_way || policy_->size() == 0) return false;
  checked_ahead_ = true;
  leave_creator(worker, ahead.unchecked, false);
  return true;
}

void Rank::wait_for_all(Worker& worker) { leave_creator(worker, 0, true); }

// Main leaves its worker, until all tasks are complete if it `waits`, else until others have gone
// first. As in sched/run/loop/waiting.cpp the next task is found before main is known to wait.
void Rank::leave_creator(Worker& worker, const std::uint64_t tasks_min, const bool waits) {
  root_.fiber = this;  // any address: it was suspended
  root_.pending.store(1, std::memory_order_relaxed);
  task::change_state(root_, State::running, State::suspended);
  worker.stage = Stage::idle;
  worker.task = nullptr;
  poll_if_due(worker);
  Task* const next = find_claimed(worker, false);
  if (!waits) {
    const auto ready = static_cast<std::uint64_t>(policy_->size());
    const std::uint64_t ticket = begun_ + sched::rules::tasks_before(ready, tasks_min);
    root_.pending.store(0, std::memory_order_relaxed);
    task::change_state(root_, State::suspended, State::resumable);
    sched::rules::insert(worker.behind, {&root_, ticket});
  } else if (family_.current->begin_wait(task::Await::descendants)) {
    root_.pending.store(0, std::memory_order_relaxed);
    task::change_state(root_, State::suspended, State::resumable);
    worker.inbox = &root_;
  }
  if (next != nullptr) {
    run(worker, *next);
  } else {
    look(worker, false);
  }
}

Task& Rank::make_task(const TaskPlan& plan, const std::size_t accesses) {
  const std::size_t bytes = sizeof(Task) + closure_bytes +
                            (accesses != 0 ? task::AccessBlock::bytes(accesses) : 0);
  const bool large = bytes > base::slab_bytes_max;
  const std::size_t slot_class = large ? 0 : base::slab_class(bytes);
  auto& task = *static_cast<Task*>(large ? pool_.take_large(bytes) : tasks_.take(slot_class));
  static constexpr std::source_location nowhere;
  task::initialise(task, {.id = next_id_++,
                          .name = kernels_[plan.kernel].name.c_str(),
                          .where = nowhere,
                          .ops = &ops_[plan.kernel],
                          .parent = &root_,
                          .scope = family_.current,
                          .priority = plan.priority,
                          .group = 0,
                          .slot_class = static_cast<std::uint8_t>(slot_class),
                          .tied = false});
  ::new (task.closure()) Closure{plan};
  return task;
}

void Rank::submit(const TaskPlan& plan) {
  const auto accesses = batch_.front_accesses();
  Task& task = make_task(plan, accesses.size());
  family_.current->count_spawned();
  task.reach = task::Reach::entry;
  ++sums_.created;
  sums_.live_most = std::max(sums_.live_most, sums_.created - sums_.ended);
  if (accesses.empty()) {
    task.pending.store(0, std::memory_order_relaxed);
    enqueue(0, task, sched::Origin::forked);
    return;
  }
  void* const block = static_cast<std::byte*>(task.closure()) + closure_bytes;
  task::build_accesses(task, block, accesses);
  task::Outcome outcome;
  table_->reserve(task, outcome);
  if (table_->link(task, small_, outcome)) task::make_ready(task, outcome.ready);
  act_on(0, outcome);
}

}  // namespace imbrex::simulate
