// SPDX-License-Identifier: BSD-3-Clause
// The loop of each worker's thread, and the only place where fibers are switched; worker.hpp
// explains it. Used to start a worker, and by waits (waiting.cpp).
#pragma once

#include "sched/run/notes.hpp"
#include "sched/run/phasers/leave.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/runtime_state.hpp"
#include "sched/run/task_races.hpp"
#include "task/access/depend.hpp"
#include "task/access_block.hpp"
#include "task/scope_stop.hpp"

namespace imbrex::sched {

void thread_main(Worker& worker);
// Gives the worker a stack for its loop before the thread starts. Throws std::bad_alloc.
void keep_first_stack(Worker& worker);

// Runs the body of `task` on the caller's stack. The thread may be another afterwards.
[[gnu::always_inline]] inline void run_body(Worker& worker, Task& task) noexcept;
// The body has ended.
inline void end_body(Worker& worker, Task& task, task::Tally& tally,
                     task::Outcome& outcome) noexcept;

// A claimed, suspended task resumes: returns the fiber to switch to.
[[nodiscard]] inline fiber::Fiber& wake_up(Worker& worker, Task& task) noexcept;
// Returns a loop to switch to: a spare one, or a new one. Ends the program if there is no memory
// for it.
[[nodiscard]] inline fiber::Fiber& loop_fiber(Worker& worker) noexcept;

// ---- bodies ----------------------------------------------------------------------------------

// `task` starts: gives back the references to its futures, and its lineage. False, and the task has
// failed, if one of the futures has failed: its body then does not run.
[[nodiscard]] bool begin_after_futures(Worker& worker, Task& task) noexcept;
// `task`, which was claimed and has not begun, is dropped: its scope stops.
[[gnu::cold, gnu::noinline]] void drop_body(Task& task) noexcept;
// The task fails with the exception of its body. Call it in a catch clause.
[[gnu::cold, gnu::noinline]] void fail_body(Task& task) noexcept;
// The body has ended and left scopes open: they end here, and the task fails, unless it has failed
// before. Suspends. (waist/scopes.cpp, where scopes are opened and closed.)
[[gnu::cold, gnu::noinline]] void end_open_scopes(Task& task) noexcept;
// The body of `task` ends in a child of fork that it has made: ends the process (life/life.cpp).
[[noreturn, gnu::cold]] void refuse_to_return(const Task& task) noexcept;
// end_open_scopes() for the code of the calling thread, which belongs to no task.
void end_scopes_of_thread() noexcept;

inline void run_body(Worker& worker, Task& task) noexcept {
  worker.task = &task;
  worker.recorder.tasks.add(1);
  worker.recorder.enter(trace::Activity::task);
  if (worker.recorder.watched()) [[unlikely]] notes::begins(worker, task);
  const task_races::Body known(task);
  constexpr auto looked_at = task::AccessBlock::futures | task::AccessBlock::failed;
  if (task.accesses != nullptr && (task.accesses->marks & looked_at) != 0 &&
      !begin_after_futures(worker, task)) [[unlikely]] {
    return;
  }
  if (task::Stop::some_open() && task::is_dropped(task)) [[unlikely]] return drop_body(task);
  try {
    task_races::call(task.ops->run, task.closure());
  } catch (...) {
    fail_body(task);
  }
  if (task.family != nullptr && task.family->current->outer != nullptr) [[unlikely]] {
    end_open_scopes(task);
  }
}

inline void end_body(Worker& worker, Task& task, task::Tally& tally,
                     task::Outcome& outcome) noexcept {
  if (task::Family* const family = task.family) {
    if (family->table != nullptr) family->table->clear(outcome);
    if (family->registrations != nullptr) [[unlikely]] {
      leave_phasers(worker, task, nullptr, outcome);
    }
  }
  if (task::body_ended(task)) task::complete(task, tally, outcome);
}

inline fiber::Fiber& wake_up(Worker& worker, Task& task) noexcept {
  auto& target = *static_cast<fiber::Fiber*>(task.fiber);
  task.fiber = nullptr;
  target.task = nullptr;
  worker.recorder.suspensions.add(1);
  worker.fiber = &target;
  worker.task = &task;
  return target;
}

[[nodiscard, gnu::noinline]] fiber::Fiber& new_loop_or_die(Worker& worker) noexcept;
inline fiber::Fiber& loop_fiber(Worker& worker) noexcept {
  if (worker.spares == nullptr) return new_loop_or_die(worker);
  fiber::Fiber& spare = *worker.spares;
  worker.spares = spare.next;
  --worker.spare_count;
  return spare;
}

}  // namespace imbrex::sched
