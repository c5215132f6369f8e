// SPDX-License-Identifier: BSD-3-Clause
// The loop of the workers of a simulated rank, and where ready tasks go. Creators and progress are
// in rank_creator.cpp and rank_progress.cpp.
#include "simulate/engine/rank.hpp"

#include <utility>

#include "simulate/engine/closure.hpp"
#include "task/access/accesses.hpp"

namespace imbrex::simulate {

using sched::Origin;
using task::Entry;
using task::State;

namespace {

constexpr Time patience_ns = 2000;  // RuntimeState::patience: before a worker steals a lone task

sched::PolicySetup policy_setup(const int workers) {
  sched::PolicySetup setup{.workers = workers,
                           .nearest = {},
                           .domain = std::vector<int>(static_cast<std::size_t>(workers), 0),
                           .wake = [](void*, int) {},
                           .wake_context = nullptr,
                           .one_thread = true};
  return setup;
}

int workers_of(const RankSetup& setup) noexcept { return Seats::count(setup.node, setup.workers); }

}  // namespace

const TaskPlan& Rank::plan_of(const Task& task) noexcept { return closure_of(task).plan; }

Rank::Rank(EventQueue& events, PointToPoint& mpi, Program& program, const int rank,
           const RankSetup& setup, Observer* const observer)
    : events_(events),
      mpi_(mpi),
      program_(program),
      rank_(rank),
      setup_(setup),
      window_(setup.window == 0 ? UINT32_MAX : setup.window),
      observer_(observer),
      policy_(sched::make_policy(setup.policy, policy_setup(workers_of(setup)))),
      only_queue_(policy_->only_queue()),
      kernels_(program.kernels()),
      root_{},
      library_root_{},
      workers_(static_cast<std::size_t>(workers_of(setup))),
      seats_(events, setup.node, setup.workers, *this) {
  lineage_.use(policy_->flow(), [](void* const policy, Task& task, const int priority) {
    static_cast<sched::Policy*>(policy)->raise(task, priority);
  }, policy_.get());
  if (lineage_.flow().times()) lineage_.report(&report_length);
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    ops_.push_back({.run = nullptr, .drop = nullptr, .destroy = nullptr});
  }
  for (std::size_t id = 0; id < workers_.size(); ++id) workers_[id].id = static_cast<int>(id);
  for (Task* const root : {&root_, &library_root_}) {
    task::initialise(*root, {.id = 0,
                             .name = "main",
                             .where = {},
                             .ops = nullptr,
                             .parent = nullptr,
                             .scope = nullptr,
                             .priority = 0,
                             .group = 0,
                             .slot_class = 0,
                             .tied = true});
    root->root.store(true, std::memory_order_relaxed);
    root->state.store(State::running, std::memory_order_relaxed);
  }
  main_ = std::make_unique<Creator>(root_);
  main_->steps = program.steps(rank, 0);
  if (main_->steps != nullptr) {
    library_ = std::make_unique<Creator>(library_root_);
    signals_.resize(program.signals(rank) + std::size_t{1}, nullptr);
  }
  mpi.listen(rank, {.arrived = [](void* const object) { static_cast<Rank*>(object)->arrived(); },
                    .object = this});
}

Rank::~Rank() {
  task::Outcome outcome;
  for (const auto& creator : {main_.get(), library_.get()}) {
    if (creator != nullptr && creator->table != nullptr) creator->table->clear(outcome);
  }
  const Creators left = std::exchange(creators_, {});  // of a simulation that has failed
  for (const auto& [task, creator] : left) {
    if (creator->table != nullptr) creator->table->clear(outcome);
  }
  while (Task* const dead = outcome.dead.pop()) recycle(*dead);
  drop_signals();
  // Tasks that the failure has left hold mutexes and what their accesses keep besides.
  task_slots_.for_each([this](std::byte* const slot) {
    auto& task = *reinterpret_cast<Task*>(slot);
    if (task.state.load(std::memory_order_relaxed) == State::free) return;
    if (task.accesses != nullptr) task::destroy_accesses(task, small_);
  });
}

void Rank::start() {
  Worker& creator = workers_[0];
  creator.task = &root_;
  creator.creator = main_.get();
  creator.stage = Stage::creates;
  at(events_.now(), creator);
  for (int id = 1; id < setup_.workers; ++id) rest(workers_[static_cast<std::size_t>(id)], true);
}

void Rank::at(const Time when, Worker& worker) {
  events_.at(when, [](void* const rank, const std::uint64_t id) {
    auto& here = *static_cast<Rank*>(rank);
    here.go_on(here.workers_[id]);
  }, this, static_cast<std::uint64_t>(worker.id));
}

// ---- the loop --------------------------------------------------------------------------------

void Rank::go_on(Worker& worker) {
  switch (worker.stage) {
    case Stage::idle: break;
    case Stage::creates: create(worker); break;
    case Stage::starts: call(worker); break;
    case Stage::ends: end(worker); break;
  }
}

void Rank::look(Worker& worker, const bool eager) {
  worker.stage = Stage::idle;
  if (seats_.must_leave(worker.id) && worker.inbox.empty()) return end_loan(worker);
  Task* task = find_claimed(worker, eager);
  if (task == nullptr || task->fiber != nullptr) flush(worker);
  if (task == nullptr) task = find_claimed(worker, eager);
  if (task == nullptr) {
    rest(worker, eager);
  } else {
    run(worker, *task);
  }
}

// The worker is idle. An idle worker polls, and after a while it takes the tasks that it has
// left to their owner.
void Rank::rest(Worker& worker, const bool eager) {
  worker.stage = Stage::idle;
  worker.task = nullptr;
  seats_.rest(worker.id);
  if (mpi_.has_arrivals(rank_) || program_.has_arrivals(rank_)) arrived();
  if (eager || policy_->size() == 0) return;
  events_.at(events_.now() + patience_ns, [](void* const rank, const std::uint64_t id) {
    auto& here = *static_cast<Rank*>(rank);
    Worker& one = here.workers_[id];
    if (one.stage == Stage::idle && !one.is_woken && here.seats_.has_processor(one.id)) {
      here.look(one, true);
    }
  }, this, static_cast<std::uint64_t>(worker.id));
}

// A claimed task begins, or goes on.
void Rank::run(Worker& worker, Task& task) {
  worker.task = &task;
  if (task.family != nullptr) {  // a creator goes on
    worker.creator = &task == &root_ ? main_.get() : creators_.at(&task).get();
    task.fiber = nullptr;
    worker.creator->family.current->awaiting = task::Await::nothing;
    worker.was_suspended = true;
    worker.stage = Stage::creates;
    at(events_.now() + std::exchange(worker.creator->owed, 0), worker);
    return;
  }
  worker.began = events_.now();
  if (task.fiber == nullptr) return begin(worker, task);
  task.fiber = nullptr;
  worker.was_suspended = true;
  if (plan_of(task).role == Role::receive) note_receive(task, plan_of(task));
  sums_.overhead_ns += setup_.overhead_ns;
  worker.stage = Stage::ends;
  at(events_.now() + setup_.overhead_ns, worker);
}

void Rank::begin(Worker& worker, Task& task) {
  ++begun_;
  ++sums_.tasks;
  worker.was_suspended = false;
  if (observer_ != nullptr) observer_->began(rank_, worker.id, task, events_.now());
  task::Outcome outcome;
  lineage_.begins(task, outcome);
  act_on(worker.id, outcome);
  const TaskPlan& plan = plan_of(task);
  Time busy = setup_.task_ns + std::exchange(worker.owed, 0);
  sums_.overhead_ns += setup_.task_ns;
  if (plan.creates != 0) {
    begin_creator(worker, task, plan);
  } else if (plan.role == Role::compute) {
    const Time given = plan.duration >= 0 ? plan.duration : kernels_[plan.kernel].duration;
    const Time duration = time_of(static_cast<double>(given) * setup_.slowness);
    sums_.in_task_ns += duration;
    busy += duration;
    worker.stage = Stage::ends;
  } else {
    if (plan.role == Role::send) {
      Time called = setup_.overhead_ns;
      if (plan.bytes <= setup_.eager_bytes) {
        called += time_of(static_cast<double>(plan.bytes) * setup_.copy_ns_per_byte);
      }
      sums_.overhead_ns += called;
      busy += called;
    } else if (plan.role == Role::protocol) {
      sums_.overhead_ns += setup_.overhead_ns;
      busy += setup_.overhead_ns;
    }
    worker.stage = Stage::starts;
  }
  at(events_.now() + busy, worker);
}

// The task sends or receives.
void Rank::call(Worker& worker) {
  Task& task = *worker.task;
  const TaskPlan& plan = plan_of(task);
  bool completes = false;
  if (plan.role == Role::send) {
    note_send(task, plan);
    const int urgency = policy_->urgency_of(task.priority.load(std::memory_order_relaxed));
    completes = mpi_.send(rank_, task, plan, urgency);
  } else if (plan.role == Role::protocol) {
    if (lineage_.flow().learns) lineage_.sends(task);
    completes = program_.call(rank_, task, plan);
    if (!completes && observer_ != nullptr) {
      observer_->ended(rank_, worker.id, task, events_.now());
    }
  } else {
    completes = mpi_.receive(rank_, task, plan);
    if (completes) {
      note_receive(task, plan);
      sums_.overhead_ns += setup_.overhead_ns;
      worker.stage = Stage::ends;
      at(events_.now() + setup_.overhead_ns, worker);
      return;
    }
  }
  completes ? end(worker) : suspend(worker);
}

// The task waits for its MPI call; poll() finds the task again.
void Rank::suspend(Worker& worker) {
  Task& task = *worker.task;
  task.fiber = this;  // any address: it was suspended
  task.pending.store(1, std::memory_order_relaxed);
  task::change_state(task, State::running, State::suspended);
  worker.task = nullptr;
  poll_if_due(worker);
  look(worker, false);
}

void Rank::end(Worker& worker) {
  Task& task = *worker.task;
  worker.task = nullptr;
  if (observer_ != nullptr) observer_->ended(rank_, worker.id, task, events_.now());
  if (plan_of(task).role == Role::compute) program_.ended(rank_, plan_of(task));
  task::Outcome outcome;
  task::Step step{0, 0};
  if (task.accesses != nullptr && task.accesses->step.trail != 0) {
    const Time duration = worker.was_suspended ? 0 : 1 + events_.now() - worker.began;
    step = lineage_.ends(task, static_cast<std::uint64_t>(duration));
  }
  if (task.family != nullptr) {
    const Creator& creator = *creators_.at(&task);
    if (creator.table != nullptr) creator.table->clear(outcome);
  }
  if (task::body_ended(task)) task::complete(task, worker.tally, outcome);
  ++sums_.ended;
  note_end(step, outcome);
  Task* const next = sched::rules::take_only_one(outcome.ready, [&](const Task& ready) {
    return worker.inbox.empty() && !ready.tied && !is_by_library(ready) &&
           policy_->empty(worker.id) && !seats_.must_leave(worker.id);
  });
  act_on(worker.id, outcome);
  poll_if_due(worker);
  if (next != nullptr) {
    run(worker, *next);
  } else {
    look(worker, false);
  }
}

// ---- where the next task comes from ----------------------------------------------------------

Entry Rank::take_others(Worker& worker) {
  worker.turn_of_others.begin();
  if (!worker.inbox.empty()) {
    Task* const task = worker.inbox.front();
    worker.inbox.pop_front();
    return {task, true};
  }
  if (Task* const task = sched::rules::take_due(worker.behind, false, begun_)) {
    if (!worker.behind.empty()) worker.turn_of_others.after_one_pick();
    return {task, true};
  }
  if (Task* const task = sched::rules::take_due(behind_, false, begun_)) {
    if (!behind_.empty()) worker.turn_of_others.after_one_pick();
    return {task, true};
  }
  return {};
}

Entry Rank::find(Worker& worker, const bool eager) {
  if (!worker.inbox.empty() || worker.turn_of_others.is_due()) {
    if (const Entry entry = take_others(worker)) return entry;
  }
  if (lineage_.is_behind()) {
    task::Outcome outcome;
    lineage_.catch_up(outcome);
    act_on(worker.id, outcome);
  }
  if (only_queue_ != nullptr) {
    const bool is_own = sched::rules::is_own(*only_queue_, worker.id);
    if (!is_own && !sched::rules::may_take(*only_queue_, eager)) return {};
    if (!is_own) flush(worker);
    return only_queue_->pop();
  }
  return sched::rules::find_in_order(
      *policy_, worker.id, [] { return Entry{}; },
      [&] {
        flush(worker);
        return policy_->steal(worker.id, eager);
      });
}

Task* Rank::find_claimed(Worker& worker, const bool eager) {
  for (;;) {
    Entry entry = find(worker, eager);
    if (!entry && !(worker.behind.empty() && behind_.empty())) {
      if (workers_.size() > 1) entry = find(worker, true);
      if (!entry) entry = {sched::rules::take_due(worker.behind, true, begun_), true};
      if (!entry) entry = {sched::rules::take_due(behind_, true, begun_), true};
    }
    if (!entry) return nullptr;
    if (task::claim(entry)) return entry.task;
    drop_reference(*entry.task);  // a stale entry
  }
}

void Rank::flush(Worker& worker) {
  if (worker.tally.scope == nullptr) return;
  task::Outcome outcome;
  task::flush(worker.tally, outcome);
  act_on(worker.id, outcome);
}

// ---- where a ready task goes -----------------------------------------------------------------

void Rank::act_on(const int worker, task::Outcome& outcome) {
  while (Task* const ready = outcome.ready.pop()) {
    enqueue(worker, *ready, ready->fiber != nullptr ? Origin::resumed : Origin::released);
  }
  while (Task* const dead = outcome.dead.pop()) recycle(*dead);
}

void Rank::enqueue(const int worker, Task& task, const Origin origin) {
  if (&task == &root_) {  // it is tied to the thread of worker 0
    workers_[0].inbox.push_back(&task);
    wake(workers_[0]);
    return;
  }
  if (task.tied && origin == Origin::resumed) {
    Worker& home = workers_[static_cast<std::size_t>(creators_.at(&task)->worker)];
    home.inbox.push_back(&task);
    wake(home);
    return;
  }
  if (origin != Origin::resumed && plan_of(task).by_library) return post(worker, task);
  if (origin != Origin::resumed) task.state.store(State::ready, std::memory_order_release);
  if (origin == Origin::forked && lineage_.marks()) mark(task);
  if (only_queue_ != nullptr && worker != sched::no_worker) {
    only_queue_->push(task, origin == Origin::resumed, worker);
  } else {
    policy_->push(task, {.worker = worker}, origin);
  }
  seats_.wake_one();
}

void Rank::wake(Worker& worker) { wake_at(events_.now(), worker); }

void Rank::wake_at(const Time when, Worker& worker) {
  if (worker.stage != Stage::idle || worker.is_woken) return;
  worker.is_woken = true;
  events_.at(when, [](void* const rank, const std::uint64_t id) {
    auto& here = *static_cast<Rank*>(rank);
    Worker& one = here.workers_[id];
    one.is_woken = false;
    if (one.stage == Stage::idle && here.may_look(one)) here.look(one, false);
  }, this, static_cast<std::uint64_t>(worker.id));
}

// A tied task goes on beside the owner of a processor that has gone back.
bool Rank::may_look(const Worker& worker) {
  return seats_.take(worker.id) || (seats_.is_spare(worker.id) && !worker.inbox.empty());
}

void Rank::end_loan(Worker& worker) {
  worker.stage = Stage::idle;
  worker.task = nullptr;
  flush(worker);
  if (!seats_.has_processor(worker.id)) return;
  seats_.leave(worker.id);
  if (policy_->size() > 0) seats_.wake_one();
}

void Rank::recycle(Task& task) {
  if (task.family != nullptr) {
    const auto creator = creators_.extract(&task);
    if (!creator.empty() && creator.mapped()->table != nullptr) {
      task::Outcome outcome;
      creator.mapped()->table->clear(outcome);
      act_on(sched::no_worker, outcome);
    }
  }
  if (task.accesses != nullptr) task::destroy_accesses(task, small_);
  task.state.store(State::free, std::memory_order_relaxed);
  if (task.slot_class != 0) {
    tasks_.give(&task, task.slot_class);
  } else {
    task_slots_.give_large(&task);
  }
}

void Rank::drop_reference(Task& task) {
  if (task::drop(task)) recycle(task);
}

}  // namespace imbrex::simulate
