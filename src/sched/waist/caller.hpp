// SPDX-License-Identifier: BSD-3-Clause
// The first steps of the functions of the waist: they find the caller's worker, and check whether
// the caller may make the call. A thread that is no worker enters by a visit (life/visit.hpp).
#pragma once

#include <source_location>
#include <string>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "sched/life/visit.hpp"
#include "task/access/in_place.hpp"

namespace imbrex::detail {

using sched::is_outside;
using sched::Purpose;
using sched::Worker;
using task::Family;
using task::Scope;
using task::State;
using task::Task;

// Throw Error: the caller must not do `what` here.
[[noreturn, gnu::cold, gnu::noinline]] void refuse_to_wait(const char* what);
[[noreturn, gnu::cold, gnu::noinline]] void refuse_without_runtime(const char* what);

// The place of a callback, as "inside a callback that MPI makes while it progresses".
[[nodiscard]] std::string place_of_callback();

// Tasks that are spawned in a callback, which belongs to no task, run in place, as children of a
// stand-in (visit.hpp). Throws Error where no task can be spawned.
[[nodiscard, gnu::cold, gnu::noinline]] Worker& spawning_in_callback(Worker& worker,
                                                                     const char* what);
[[nodiscard]] inline Worker& spawning(Worker& worker, const char* const what) {
  const bool in_task = worker.callbacks == 0 && worker.task != nullptr;
  return in_task ? worker : spawning_in_callback(worker, what);
}

// `what` is read only for the error.
inline void check_may_wait(const Worker& worker, const char* const& what) {
  if (worker.callbacks != 0 || worker.task == nullptr) [[unlikely]] refuse_to_wait(what);
}

// Whether a wait for `event` is needed: false if the event has fired. In a callback, which cannot
// be suspended, the event must have fired.
[[nodiscard]] inline bool must_wait(const Worker& worker, const EventWord& event,
                                    const char* const& what) {
  if (worker.callbacks == 0 && worker.task != nullptr) [[likely]] return true;
  if (!event.has_fired()) refuse_to_wait(what);
  return false;
}

// Repeats the call, from inside.
template <class Call>
[[gnu::cold, gnu::noinline]] auto visit_to_wait(const char* const what, Call call) {
  return sched::visit(Purpose::waits, call, [what]() -> decltype(call()) {
    refuse_without_runtime(what);
  });
}

// Makes the Family of a task, which it needs once it spawns or opens a scope.
[[gnu::noinline]] void make_family(Worker& worker, Task& task);
[[nodiscard]] inline Family& family_of(Worker& worker, Task& task) {
  if (task.family == nullptr) [[unlikely]] make_family(worker, task);
  return *task.family;
}

// ---- the body of iterate() (loops/iterate.cpp) ----
// Its tasks become nodes, and whatever would wait for them is refused.

[[nodiscard]] inline bool records(const Family& family) noexcept {
  return family.current->kind == ScopeKind::recording;
}

// REQUIRES for the next four: records(family).
// A task is about to be created. Throws Error if it cannot be a node.
void check_recorded(Family& family, const TaskSpec& spec, const BodyOps& ops);
// The task is there: a node will be made of it. Returns null.
Completion* record(Family& family, void* closure) noexcept;
// `task` has been created, and cannot be a node.
[[noreturn]] void refuse_recorded(const Family& family, const Task& task, const char* reason);
[[noreturn]] void refuse_in_recording(const Family& family, const char* what);

// ---- futures ----

// The calling code may own no reference to `completion`, and use a future of another task.
inline void share(Completion& completion) noexcept {
  const Worker* const worker = sched::current_worker();
  task::share(completion, worker != nullptr ? static_cast<Task*>(worker->task) : nullptr);
}

}  // namespace imbrex::detail
