// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/loop/loop.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "base/check.hpp"
#include "imbrex/detail/observation.hpp"
#include "sched/run/dead.hpp"
#include "sched/run/idle.hpp"
#include "sched/run/polling.hpp"
#include "sched/run/ready.hpp"
#include "task/access/accesses.hpp"
#include "task/access/inheritance.hpp"
#include "task/ending/instance.hpp"

namespace imbrex::sched {

using trace::Activity;

// ---- running ---------------------------------------------------------------------------------

void fail_body(Task& task) noexcept {
  task::fail_task(task, task::failure_of_task(task, std::current_exception()));
}

void drop_body(Task& task) noexcept {
  task::fail_task(task, task.scope->stop->failure());
  if (task.ops->drop != nullptr) task.ops->drop(task.closure());
}

bool begin_after_futures(Worker& worker, Task& task) noexcept {
  task::end_lineage(task, worker.small, [&](Task& done) { drop_reference(worker, done); });
  const bool runs_anyway = task.accesses->after_failure;
  task::Failure* const cause = task::inherited_by(task);
  if (task::is_dropped(task)) {
    task::fail_task(task, task.scope->stop->failure());
  } else if (cause != nullptr && !runs_anyway) {
    task::fail_task(task, task::failure_by(task, *cause));
  }
  task::release_futures(task, [&](detail::Completion& done) {
    if (done.failure != nullptr && task.failure == nullptr && !runs_anyway) {
      task::fail_task(task, task::failure_by(task, *done.failure));
    }
    if (task::drop(done)) destroy(done);  // as `task`: the worker may be another from here on
  });
  if (task.failure != nullptr && task.ops->drop != nullptr) task.ops->drop(task.closure());
  return task.failure == nullptr;
}

namespace {

constexpr int spares_max = 16;

// Whether the worker has nothing else to run than `task`, which is ready.
bool has_nothing_else(const Worker& worker, const Task& task) noexcept {
  if (worker.inbox.load(std::memory_order_relaxed) != nullptr || task.group != worker.group) {
    return false;
  }
  const Membership& place = *worker.membership;
  if (worker.queues != nullptr) return worker.queues->empty();
  return !must_leave(worker) && place.group->policy->empty(place.index);
}

// Returns the only ready task if the worker has nothing else to run: it needs no queue.
Task* only_one(Worker& worker, task::Outcome& outcome) noexcept {
  return rules::take_only_one(outcome.ready, [&worker](const Task& task) {
    return has_nothing_else(worker, task);
  });
}

// A task has ended in the loop. Returns the task to run next at once, or null. A remaining result
// belongs to futures, and is destroyed with the last of them.
template <bool watched>
Task* finish_as(Worker& worker, Task& task) noexcept {
  task::Outcome outcome;
  [[maybe_unused]] task::Step step{0, 0};
  if constexpr (watched) step = notes::ends(worker, task);
  if (task::is_unknown(task) && task.ops->destroy == nullptr) {
    task::complete_unknown(task, worker.tally, outcome);
    recycle(worker, task);
    if (outcome.ready.empty() && outcome.dead.empty()) [[likely]] return nullptr;
  } else {
    end_body(worker, task, worker.tally, outcome);
    if constexpr (watched) notes::follow(worker, step, outcome);
  }
  Task* const next = only_one(worker, outcome);
  if (next != nullptr && next->scope != worker.tally.scope) task::flush(worker.tally, outcome);
  act_on(worker, outcome);
  return next;
}
[[gnu::noinline]] Task* finish_watched(Worker& worker, Task& task) noexcept {
  return finish_as<true>(worker, task);
}
Task* finish(Worker& worker, Task& task) noexcept {
  if (notes::notes_end(worker, task)) [[unlikely]] return finish_watched(worker, task);
  return finish_as<false>(worker, task);
}

// ---- nodes -----------------------------------------------------------------------------------

// Nothing observes tasks, and each worker has its own queues.
[[nodiscard]] bool runs_simply(const Worker& worker) noexcept {
  return !trace::races::shown && !task::Stop::some_open() && worker.queues != nullptr &&
         !worker.runtime->one_at_a_time && !worker.recorder.watched() && !worker.recorder.timing();
}
// `task`, which is claimed, is an instance of a node before which the loop need not look at
// anything.
[[nodiscard]] bool is_simple(const Task& task) noexcept {
  if (task.wishes != Task::repeats || task.tied || task.fiber != nullptr) return false;
  const task::Node& node = task::node_of(task);
  return task.accesses->is_plain_node() &&
         node.iteration < node.cycle->look_at.load(std::memory_order_relaxed);
}

// Queues the tasks that became ready, and returns the one to run next, claimed. The queues need not
// see the first of them if they would give it back at once; but a loop without end must not keep
// tasks that gave way from their turn.
[[nodiscard]] Task* queue_all_but_next(Worker& worker, task::Outcome& outcome) noexcept {
  Task* const next = outcome.ready.head;
  const bool is_next = next != nullptr && next->fiber == nullptr &&
                       next->priority.load(std::memory_order_relaxed) == 0 &&
                       !worker.some_gave_way() && has_nothing_else(worker, *next);
  if (is_next) {
    outcome.ready.head = next->next_ready;
    task::change_state(*next, task::State::created, task::State::running);
    if (outcome.ready.empty() && outcome.dead.empty()) return next;
  }
  act_on(worker, outcome);
  return is_next ? next : find_claimed(worker, false);
}

// Runs a simple instance of a node, and those that come next as long as they are simple: run_body()
// and finish() without the steps that they do not need. Returns the claimed task after them, or
// null; the worker may be another then.
[[gnu::noinline, gnu::flatten]] Task* run_nodes(Worker* worker, Task* task) noexcept {
  flush_tally(*worker);
  do {
    worker->task = task;
    worker->recorder.tasks.add(1);
    try {
      task::node_of(*task).run(task->closure());
    } catch (...) {
      fail_body(*task);
    }
    worker = current_worker();
    task::Outcome outcome;
    if (task::ends_as_usual(*task)) [[likely]] {
      worker->task = nullptr;
      task::complete_usual(*task, outcome);
    } else {
      if (task->family != nullptr && task->family->current->outer != nullptr) {
        end_open_scopes(*task);
        worker = current_worker();
      }
      worker->task = nullptr;
      end_body(*worker, *task, worker->tally, outcome);
    }
    poll_if_due(*worker, worker->runtime->polling_between_tasks(*worker));
    task = queue_all_but_next(*worker, outcome);
  } while (task != nullptr && is_simple(*task));
  return task;
}

// Runs a claimed, unstarted task in the loop, then the tasks that it leads to. Returns the worker
// on which the last one ends.
[[nodiscard]] Worker& execute(Worker& started_on, Task& first) noexcept {
  Worker* worker = &started_on;
  for (Task* task = &first; task != nullptr;) {
    if (is_simple(*task) && runs_simply(*worker)) [[unlikely]] {
      task = run_nodes(worker, task);
      worker = current_worker();
      if (task == nullptr) break;
      if (task->fiber == nullptr) continue;
      worker->found = task;  // it resumes
      break;
    }
    if (task->tied) worker->fiber->tied_to = worker;
    run_body(*worker, *task);
    worker = current_worker();
    worker->fiber->tied_to = nullptr;
    worker->task = nullptr;
    worker->recorder.enter(Activity::overhead);
    if (task->ops->destroy != nullptr && task::is_unknown(*task)) [[unlikely]] {
      worker = &destroy_result(*worker, *task);
    }
    task = finish(*worker, *task);
    poll_if_due(*worker, worker->runtime->polling_between_tasks(*worker));
  }
  return *worker;
}

void keep_spare(fiber::Fiber& left, void* const argument) noexcept {
  Worker& worker = *static_cast<Worker*>(argument);
  if (worker.spare_count < spares_max) {
    left.next = worker.spares;
    worker.spares = &left;
    ++worker.spare_count;
  } else {
    worker.runtime->stacks.give(fiber::destroy_fiber(left));
  }
}

// Leaves the loop for a claimed, suspended task. Returns when this loop is needed again.
void resume(Worker& worker, Task& task) noexcept {
  fiber::Fiber& loop = *worker.fiber;
  if (worker.recorder.notes_switches()) [[unlikely]] notes::resumption(worker, task);
  fiber::switch_to(loop, wake_up(worker, task), worker.exception_globals, &keep_spare, &worker);
}

// The runtime stops. A thread with code of its own gets here only if another thread ends the
// program while that code waits.
void stop_here(Worker& worker) noexcept {
  while (worker.root != nullptr) ::pause();
  fiber::Fiber& loop = *worker.fiber;
  worker.fiber = &worker.native;
  fiber::switch_to(loop, worker.native, worker.exception_globals, &keep_spare, &worker);
}

// The loop of the worker of this stack. Never returns: its stack is left, or dropped.
[[gnu::flatten]] void loop() noexcept {
  for (Worker* here = current_worker();;) {
    Worker& worker = *here;
    Task* task = std::exchange(worker.found, nullptr);
    if (worker.runtime->one_at_a_time) flush_tally(worker);  // before the turn passes on
    if (task == nullptr) task = find_claimed(worker, false);
    if (task == nullptr || task->scope != worker.tally.scope || task->fiber != nullptr) {
      flush_tally(worker);
    }
    if (task == nullptr) task = idle(worker);
    if (task == nullptr) stop_here(worker);  // does not return
    if (task->fiber == nullptr) {
      here = &execute(worker, *task);
    } else {
      resume(worker, *task);
      here = current_worker();
    }
  }
}

[[gnu::noinline]] fiber::Fiber& new_loop(Worker& worker) {
  return fiber::make_fiber(worker.runtime->stacks.take(), worker.runtime->floating_point, &loop);
}

// The waiting task cannot be suspended, and nothing else can run on its stack.
[[noreturn, gnu::cold, gnu::noinline]] void die_without_stack(const Worker& worker) noexcept {
  const auto kib = static_cast<std::size_t>(worker.runtime->options.STACK_SIZE) / 1024;
  base::report(fmt::format(
      "no memory for another stack while task {} waits: {} stacks exist, each of {} KiB with as "
      "much address space below it. Raise the limit of address space (ulimit -v) or of mappings "
      "(sysctl vm.max_map_count), set IMBREX_STACK_SIZE lower, or let fewer tasks wait at the same "
      "time",
      detail::describe_current_task(), worker.runtime->stacks.mapped(), kib));
  report_all_failures();
  base::abort();
}

}  // namespace

fiber::Fiber& new_loop_or_die(Worker& worker) noexcept {
  try {
    return new_loop(worker);
  } catch (const std::bad_alloc&) {
    die_without_stack(worker);
  }
}

void keep_first_stack(Worker& worker) {
  fiber::Fiber& spare = new_loop(worker);
  spare.next = worker.spares;
  worker.spares = &spare;
  ++worker.spare_count;
}

void thread_main(Worker& worker) {
  set_current_worker(&worker);
  fiber::adopt_native(worker.native);
  worker.exception_globals = fiber::thread_exception_globals();
  fiber::Fiber& first = loop_fiber(worker);
  worker.fiber = &first;
  fiber::switch_to(worker.native, first, worker.exception_globals, &fiber::do_nothing, nullptr);
  set_current_worker(nullptr);  // the runtime has stopped
  note_loop_left();
  worker.left.store(true, std::memory_order_release);  // pairs with stop_threads()
}

}  // namespace imbrex::sched
