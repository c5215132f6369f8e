// SPDX-License-Identifier: BSD-3-Clause
// Tasks: creation, hand-over to the scheduler, references.
#include <climits>
#include <new>

#include "sched/run/dead.hpp"
#include "sched/run/loop/waiting.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/phasers/leave.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/task_races.hpp"
#include "sched/waist/caller.hpp"
#include "task/access/accesses.hpp"
#include "task/access/depend.hpp"

namespace imbrex::detail {

namespace {

[[gnu::noinline]] void make_table(const Worker& worker, Family& family) {
  task::Lineage& lineage = worker.runtime->lineage;
  family.table = new task::DependTable(lineage.marks() ? &lineage : nullptr);
}

std::size_t aligned(const std::size_t bytes) noexcept {
  return (bytes + base::cache_line_bytes - 1) & ~(base::cache_line_bytes - 1);
}

// The creator has spawned a window of tasks since its last check: if as many have not run, ready
// ones go first. The creator never waits for a count: it goes on when nothing is ready.
[[gnu::noinline]] void run_ahead(Worker& worker, Family& family, const TaskSpec& spec,
                                  const BodyOps& ops) {
  if (records(family)) return check_recorded(family, spec, ops);
  const auto window = static_cast<std::uint32_t>(worker.runtime->options.TASKS_AHEAD);
  const std::uint32_t live = family.current->outstanding();
  const auto workers = static_cast<std::uint32_t>(worker.membership->group->size);
  const sched::rules::Ahead ahead = sched::rules::look_ahead(live, window, workers);
  if (ahead.gives_way) sched::give_way(worker, ahead.half_window);
  family.unchecked = ahead.unchecked;
}

// Takes ids for the task that is about to be made and for later ones. With a trace, or where the
// order of tasks is kept, it takes one id only, so that each task passes here, and is noted.
[[gnu::noinline]] void take_ids(Worker& worker, const TaskSpec& spec) {
  const bool noted = worker.recorder.tracing() || trace::happens_before::is_kept();
  const std::uint64_t block = noted ? 1 : 64;
  worker.next_id = worker.runtime->next_id.fetch_add(block, std::memory_order_relaxed);
  worker.last_id = worker.next_id + block;
  if (noted) sched::notes::creation(worker, worker.next_id, spec);
}

// A descriptor with `bytes` behind it.
Task& make_task(Worker& worker, const TaskSpec& spec, const BodyOps& ops, const std::size_t bytes) {
  const std::size_t total = sizeof(Task) + bytes;
  const bool large = total > base::slab_bytes_max || trace::races::shown;
  const std::size_t slot_class = large ? 0 : base::slab_class(total);
  void* const memory =
      large ? worker.runtime->task_slots.take_large(total) : worker.tasks.take(slot_class);
  auto& task = *static_cast<Task*>(memory);
  if (worker.next_id == worker.last_id) [[unlikely]] take_ids(worker, spec);
  task::initialise(task, {.id = worker.next_id++,
                          .name = spec.name,
                          .where = spec.where,
                          .ops = &ops,
                          .parent = worker.task,
                          .scope = nullptr,
                          .priority = spec.priority,
                          .group = worker.task->group,
                          .slot_class = static_cast<std::uint8_t>(slot_class),
                          .tied = spec.tied || worker.ties_all});
  return task;
}

// The worker on which the caller's next child is made. Other tasks may run first.
Worker& creating_worker(Worker* worker, const TaskSpec& spec, const BodyOps& ops) {
  if (worker->task == nullptr || worker->callbacks != 0) [[unlikely]] {
    const bool queues = worker->guest && worker->callbacks == 1;
    if (!queues) (void)spawning_in_callback(*worker, "a task spawned");
  }
  Family& family = family_of(*worker, *worker->task);
  if (family.unchecked++ >= worker->window) [[unlikely]] {
    run_ahead(*worker, family, spec, ops);
    worker = sched::current_worker();
  }
  return *worker;
}

// Counts the child in the scope where its parent spawns now.
Task& count_child(Worker& worker, void* const closure, const bool keep) noexcept {
  Task& task = Task::of_closure(closure);
  Scope& scope = *worker.task->family->current;
  scope.count_spawned();
  task.scope = &scope;
  task.reach = keep ? task::Reach::future : task::Reach::entry;
  if (keep) task.references.store(2, std::memory_order_relaxed);
  return task;
}

}  // namespace

// In a callback a task runs at once, so it cannot wait for an event that has not fired yet.
[[gnu::cold, gnu::noinline]] static void check_runs_in_place(const TaskSpec& spec) {
  for (const AccessSpec& access : spec.accesses) {
    if (access.kind != AccessKind::after) continue;
    const auto& event = *static_cast<const Completion*>(access.address);
    if (!event.event.has_fired()) refuse_to_wait("a task that waits for a future, spawned");
  }
}

// A visitor between its task's creation and the next call is not inside; but the thread that ends
// the runtime waits for it.
template <class Create>
[[gnu::cold, gnu::noinline]] static void* create_outside(Create create) {
  return sched::visit_to_spawn([create] {
    void* const closure = create();
    sched::begin_creation();
    return closure;
  });
}
template <class Submit>
[[gnu::cold, gnu::noinline]] static auto submit_outside(Submit submit) {
  const sched::Visit here(Purpose::waits);
  sched::end_creation();
  return submit();
}

[[gnu::flatten]] void* create(const TaskSpec& spec, const BodyOps& ops, const std::size_t bytes) {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] {
    return create_outside([&spec, &ops, bytes] { return create(spec, ops, bytes); });
  }
  return make_task(creating_worker(here, spec, ops), spec, ops, aligned(bytes)).closure();
}

[[gnu::flatten]] void* create_with_accesses(const TaskSpec& spec, const BodyOps& ops,
                                            const std::size_t bytes) {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] {
    return create_outside(
        [&spec, &ops, bytes] { return create_with_accesses(spec, ops, bytes); });
  }
  if (!spec.distinct && spec.accesses.size() > 1) task::check_accesses(spec.name, spec.accesses);
  const std::size_t closure_bytes = aligned(bytes);
  if (here->callbacks != 0) [[unlikely]] check_runs_in_place(spec);
  Task& task = make_task(creating_worker(here, spec, ops), spec, ops,
                         closure_bytes + task::AccessBlock::bytes(spec.accesses.size()));
  task::build_accesses(task, static_cast<std::byte*>(task.closure()) + closure_bytes,
                       spec.accesses);
  if (spec.after_failure) [[unlikely]] task.accesses->after_failure = true;
  return task.closure();
}

void discard(void* const closure) noexcept {
  if (is_outside()) return submit_outside([closure] { discard(closure); });
  Task& task = Task::of_closure(closure);
  if (task.accesses != nullptr) {
    task::release_futures(task, [](Completion& completion) { release(completion); });
  }
  sched::leave_phasers(task);  // phasers of its registration
  sched::reuse(*sched::current_worker(), task);
}

[[gnu::flatten]] Completion* submit(void* const closure, const bool keep) noexcept {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] {
    return submit_outside([closure, keep] { return submit(closure, keep); });
  }
  Worker& worker = *here;
  Family& family = *worker.task->family;
  if (records(family)) [[unlikely]] return record(family, closure);
  Task& task = count_child(worker, closure, keep);
  task.pending.store(0, std::memory_order_relaxed);
  sched::task_races::spawn(task);
  sched::enqueue(worker, task, sched::Origin::forked);
  return &task;
}

namespace {

// The child is not counted yet, and is freed if there is no memory for its accesses.
void make_room(Worker& worker, Family& family, Task& child, task::Outcome& outcome) {
  try {
    if (family.table == nullptr) [[unlikely]] make_table(worker, family);
    family.table->reserve(child, outcome);
  } catch (...) {
    sched::act_on(worker, outcome);
    child.ops->drop(child.closure());
    discard(child.closure());
    throw;
  }
}

}  // namespace

[[gnu::flatten]] Completion* submit_with_accesses(void* const closure, const bool keep) {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] {
    return submit_outside([closure, keep] { return submit_with_accesses(closure, keep); });
  }
  Worker& worker = *here;
  Family& family = *worker.task->family;
  if (records(family)) [[unlikely]] return record(family, closure);
  task::Outcome outcome;
  make_room(worker, family, Task::of_closure(closure), outcome);
  Task& task = count_child(worker, closure, keep);
  sched::task_races::spawn(task);
  if (family.table->link(task, worker.small, outcome)) task::make_ready(task, outcome.ready);
  if (outcome.ready.head != nullptr || outcome.dead.head != nullptr) {
    sched::act_on(worker, outcome);
  } else if (worker.queues != nullptr) {  // a creator far ahead of its tasks queues nothing
    worker.queues->lock.answer();
  }
  return &task;
}

void retain(Completion& completion) noexcept {
  share(completion);
  task::add_reference(completion);
}

void release(Completion& completion) noexcept {
  if (!task::drop(completion)) return;
  Worker* const worker = sched::current_worker();
  if (worker == nullptr) [[unlikely]] {
    sched::destroy_outside(completion);
  } else if (task::is_task(completion) &&
             sched::reuse_if_plain(*worker, static_cast<Task&>(completion))) [[likely]] {
    return;
  } else if (sched::may_wait(*worker)) {
    sched::destroy(completion);
  } else {
    sched::discard(*worker, completion);
  }
}

}  // namespace imbrex::detail
