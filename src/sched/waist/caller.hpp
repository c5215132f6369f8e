// SPDX-License-Identifier: BSD-3-Clause
// The functions of the waist begin with these: they find out who calls, and whether the caller may
// do so. They lead from the caller's thread to its worker; a thread that is no worker enters by a
// visit (life/visit.hpp).
#pragma once

#include <source_location>
#include <string>

#include "imbrex/detail/waist.hpp"
#include "sched/life/visit.hpp"
#include "task/in_place.hpp"

namespace imbrex::detail {

using sched::is_outside;
using sched::Purpose;
using sched::Worker;
using task::Family;
using task::Scope;
using task::State;
using task::Task;

// Both throw Error: `what` cannot be done where the caller stands.
[[noreturn, gnu::cold, gnu::noinline]] void refuse_to_wait(const char* what);
[[noreturn, gnu::cold, gnu::noinline]] void refuse_without_runtime(const char* what);

// Where a callback stands, as "inside a callback that MPI makes while it progresses".
[[nodiscard]] std::string place_of_callback();

// In a callback, which runs in no task, tasks are spawned all the same: run in place, as children
// of a stand-in (visit.hpp). Throws Error where nothing can be.
[[nodiscard, gnu::cold, gnu::noinline]] Worker& spawning_in_callback(Worker& worker,
                                                                     const char* what);
[[nodiscard]] inline Worker& spawning(Worker& worker, const char* const what) {
  const bool in_task = worker.callbacks == 0 && worker.task != nullptr;
  return in_task ? worker : spawning_in_callback(worker, what);
}

// `what` is read only to refuse.
inline void check_may_wait(const Worker& worker, const char* const& what) {
  if (worker.callbacks != 0 || worker.task == nullptr) [[unlikely]] refuse_to_wait(what);
}

// A wait for `event` may go on: false if there is nothing to wait for. In a callback, which cannot
// be suspended, the event must have happened.
[[nodiscard]] inline bool must_wait(const Worker& worker, const EventWord& event,
                                    const char* const& what) {
  if (worker.callbacks == 0 && worker.task != nullptr) [[likely]] return true;
  if (!event.has_fired()) refuse_to_wait(what);
  return false;
}

// The same call once more, from inside.
template <class Call>
[[gnu::cold, gnu::noinline]] auto visit_to_wait(const char* const what, Call call) {
  return sched::visit(Purpose::waits, call, [what]() -> decltype(call()) {
    refuse_without_runtime(what);
  });
}

// Makes the part beside its descriptor that a task needs once it spawns or opens a scope.
[[gnu::noinline]] void make_family(Worker& worker, Task& task);
[[nodiscard]] inline Family& family_of(Worker& worker, Task& task) {
  if (task.family == nullptr) [[unlikely]] make_family(worker, task);
  return *task.family;
}

// The calling code may not own a reference to `completion`, only see somebody's future.
inline void share(Completion& completion) noexcept {
  const Worker* const worker = sched::current_worker();
  task::share(completion, worker != nullptr ? static_cast<Task*>(worker->task) : nullptr);
}

}  // namespace imbrex::detail
