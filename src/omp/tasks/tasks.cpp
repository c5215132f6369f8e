// SPDX-License-Identifier: BSD-3-Clause
#include "omp/tasks/tasks.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <source_location>
#include <span>
#include <utility>

#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/region/gate.hpp"
#include "omp/environment/others.hpp"

namespace imbrex::omp {

namespace {

// The state of a detach(event) clause. The task owns one reference until it has begun, the event
// owns one until it is fulfilled.
struct Detached {
  detail::EventWord event;
  std::atomic<int> references{2};
  std::atomic<bool> fulfilled{false};
};

void drop(Detached& detached) noexcept {
  if (detached.references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &detached;
}

// The closure: this, and the task's data.
struct Explicit : Context {
  Function function = nullptr;
  void* data = nullptr;
  Detached* detached = nullptr;
  bool constructed = false;  // the compiler's code must destroy the copies in the data
};

void run(void* const closure) noexcept {
  auto& task = *static_cast<Explicit*>(closure);
  task.number = detail::place_in(*task.team->group);
  if (suspending() == Suspending::nowhere) [[unlikely]] detail::set_blocking(true);
  if (task.detached != nullptr) {
    detail::release_after(task.detached->event);
    drop(*task.detached);
  }
  if (task.constructed || !is_cancelled(task)) task.function(task.data);
}

// The function that the compiler has made of the construct.
const void* code(const void* const closure) noexcept {
  return reinterpret_cast<const void*>(static_cast<const Explicit*>(closure)->function);
}

}  // namespace

const detail::BodyOps explicit_body{
    .run = &run, .drop = nullptr, .destroy = nullptr, .code = &code};

namespace {

// REQUIRES: `alignment` is a power of two.
std::size_t aligned(const std::size_t bytes, const std::size_t alignment) noexcept {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

// The initial Context of a child of `context`. REQUIRES: is_final, if the context is.
Context child_of(const Context& context, const bool is_final, const Form form) noexcept {
  return {.team = context.team,
          .taskgroup = context.taskgroup,
          .number = context.number,
          .is_explicit = true,
          .is_final = is_final,
          .form = form,
          .variables = context.variables};
}

void copy_data(void* const to, const TaskData& data) {
  if (data.copy != nullptr) {
    data.copy(to, data.data);
  } else if (data.bytes != 0) {
    std::memcpy(to, data.data, static_cast<std::size_t>(data.bytes));
  }
}

// The handle goes to the variable of the clause, and to the first word of the data.
void announce(Detached& detached, const TaskData& data, void** const detach) noexcept {
  *detach = &detached;
  if (data.data != nullptr) *static_cast<void**>(data.data) = &detached;
}

constexpr std::size_t closure_alignment = 64;  // of detail::create()

// True if tasks of `context` may be deferred at all.
bool may_defer(const Context& context) noexcept {
  return context.team->group != nullptr && !context.is_final;
}

[[gnu::always_inline]] inline void defer_with(const std::span<const detail::AccessSpec> accesses,
                                              const Context& context, const TaskData& data,
                                              const TaskClauses& clauses, const Adjust adjust,
                                              const void* const argument) {
  const std::size_t alignment = std::max<std::size_t>(static_cast<std::size_t>(data.alignment), 1);
  const std::size_t offset = aligned(sizeof(Explicit), std::min(alignment, closure_alignment));
  const std::size_t slack = alignment > closure_alignment ? alignment : 0;
  const std::size_t bytes = offset + static_cast<std::size_t>(data.bytes) + slack;
  static constexpr std::source_location nowhere{};
  const detail::TaskSpec spec{.name = "task",
                              .where = nowhere,
                              .priority = clauses.priority,
                              .tied = true,
                              .accesses = accesses,
                              .distinct = true};
  void* const closure = accesses.empty()
                            ? detail::create(spec, explicit_body, bytes)
                            : detail::create_with_accesses(spec, explicit_body, bytes);
  auto& task = *::new (closure) Explicit{child_of(context, clauses.is_final, Form::task)};
  task.function = data.function;
  task.constructed = data.copy != nullptr;
  task.data = reinterpret_cast<void*>(
      aligned(reinterpret_cast<std::uintptr_t>(closure) + offset, alignment));
  if (clauses.detach != nullptr) {
    task.detached = new Detached;
    announce(*task.detached, data, clauses.detach);
  }
  copy_data(task.data, data);
  if (adjust != nullptr) adjust(task.data, argument);
  (void)(accesses.empty() ? detail::submit(closure, false)
                          : detail::submit_with_accesses(closure, false));
}

void defer(Context& context, const TaskData& data, const TaskClauses& clauses, const Adjust adjust,
           const void* const argument) {
  make_task(context);
  if (clauses.depend == nullptr) {
    defer_with({}, context, data, clauses, adjust, argument);
  } else {
    Accesses accesses(clauses.depend);
    defer_with(accesses.span(), context, data, clauses, adjust, argument);
  }
}

// A task that runs at its creation.
struct Included : Context {
  detail::Entered entered;  // unless the task is a call
};

}  // namespace

void make_task(Context& context) {
  if (context.form != Form::call || context.team->group == nullptr) return;
  context.form = Form::included;
  void* const closure = detail::create({.name = "task", .where = {}, .tied = true}, explicit_body,
                                       sizeof(Explicit));
  auto& task = *::new (closure) Explicit{child_of(context, context.is_final, Form::task)};
  task.included = &context;
  detail::enter(closure, nullptr, static_cast<Included&>(context).entered);
  if (suspending() == Suspending::nowhere) [[unlikely]] detail::set_blocking(true);
}

namespace {

void end_task(const Included& included) {
  detail::end_scopes(nullptr, "the body of task");
  detail::Completion* const held = detail::held_task();
  detail::leave(included.entered);
  if (held == nullptr) return;
  detail::await(*held);
  detail::release(*held);
}

// An exception that leaves a task ends the program: no code around an included task may catch it.
void call_body(const Function function, void* const data) noexcept { function(data); }

// Runs `call` as an included task of the code of `context`, in `outer`. If only OpenMP's own
// constructs wait, it is a call, as under libgomp, until it needs to be a task of the runtime.
// Otherwise it is a task from the start, so that its children, waits and events belong to it.
template <class Call>
[[gnu::always_inline]] inline void run_included(Context& outer, const Context& context,
                                                const bool is_final, const bool is_call,
                                                Call call) {
  Included child{child_of(context, is_final, Form::call), {}};
  Context* const before = std::exchange(outer.included, &child);
  if (!is_call) make_task(child);
  // Outside of regions it stays a call of the thread's code, which may open scopes of imbrex.
  const bool may_open = !is_call && child.form == Form::call;
  detail::ScopeMemory* const scope = may_open ? detail::innermost_scope() : nullptr;
  call();
  if (child.form == Form::included) end_task(child);
  if (may_open) detail::end_scopes(scope, "an undeferred task of OpenMP in");
  outer.included = before;
}

void wait_fulfilled(Detached& detached) {
  wait_until(&detached, "omp_fulfill_event",
             [&] { return detached.fulfilled.load(std::memory_order_acquire); });
  drop(detached);
}

void include(Context& context, const TaskData& data, const TaskClauses& clauses,
             const Adjust adjust, const void* const argument) {
  if (clauses.depend != nullptr) {
    (context.team->group != nullptr ? wait_for_accesses : wait_for_events)(clauses.depend);
  }
  Detached* const detached = clauses.detach != nullptr ? new Detached : nullptr;
  if (detached != nullptr) announce(*detached, data, clauses.detach);
  Context& outer = context.form == Form::task ? context : around();
  const bool is_final = clauses.is_final || context.is_final;
  run_included(outer, context, is_final, only_openmp_waits(), [&] {
    if (data.copy == nullptr) {
      if (adjust != nullptr) adjust(data.data, argument);
      call_body(data.function, data.data);
      return;
    }
    const auto alignment = static_cast<std::size_t>(data.alignment);
    const std::size_t bytes = static_cast<std::size_t>(data.bytes) + alignment;
    const std::unique_ptr<std::byte[]> memory(new std::byte[bytes]);
    void* const copied = reinterpret_cast<void*>(
        aligned(reinterpret_cast<std::uintptr_t>(memory.get()), alignment));
    data.copy(copied, data.data);
    if (adjust != nullptr) adjust(copied, argument);
    call_body(data.function, copied);
  });
  if (detached != nullptr) wait_fulfilled(*detached);
}

// Once a thread has enough tasks queued a further one is cheapest as a call of its creator:
// libgomp's rule. A call that waits keeps its creator from going on, so the rule is for programs in
// which nothing can wait for the next steps of the creator.
bool has_enough_queued() noexcept {
  bool enough = false;
  return only_openmp_waits() && ((void)detail::running_body(enough), enough);
}

}  // namespace

void begin_task(Context& context, const TaskData& data, const TaskClauses& clauses,
                const bool deferrable, const Adjust adjust, const void* const argument) {
  const bool may_call = clauses.depend == nullptr && clauses.detach == nullptr;
  if (!deferrable || !may_defer(context) || (may_call && has_enough_queued())) {
    include(context, data, clauses, adjust, argument);
  } else {
    defer(context, data, clauses, adjust, argument);
  }
}

namespace {

// begin_task() for a deferrable task without clauses that the calling code creates. It does as
// little else as possible.
[[gnu::noinline]] void begin_plain(const Function function, void* const data, const long bytes,
                                   const long alignment) {
  bool enough = false;
  Context& outer = only_openmp_waits() ? context_of(detail::running_body(enough)) : around();
  Context& context = innermost(outer);
  if (is_cancelled(context)) return;
  if (!may_defer(context)) {
    include(context, {function, data, nullptr, bytes, alignment}, {}, nullptr, nullptr);
  } else if (enough) {
    run_included(outer, context, false, true, [=] { call_body(function, data); });
  } else {
    defer(context, {function, data, nullptr, bytes, alignment}, {}, nullptr, nullptr);
  }
}

// begin_task() for any other task. The compiler passes `depend`, `priority` and `detach` only if
// their flags are set: older compilers do not know them.
[[gnu::noinline]] void begin_any(const Function function, void* const data,
                                 void (*const copy)(void*, void*), const long bytes,
                                 const long alignment, const bool if_clause, const unsigned flags,
                                 void** const depend, const int priority, void* const detach) {
  Context& context = current();
  if (is_cancelled(context)) return;
  begin_task(context, {function, data, copy, bytes, alignment},
             {.is_final = (flags & task_flag::final) != 0,
              .priority = (flags & task_flag::priority) != 0 ? priority : 0,
              .depend = (flags & task_flag::depend) != 0 ? depend : nullptr,
              .detach = (flags & task_flag::detach) != 0 ? static_cast<void**>(detach) : nullptr},
             if_clause, nullptr, nullptr);
}

}  // namespace

// Nothing is ever cancelled without OMP_CANCELLATION.
bool is_cancelled(const Context& context) noexcept {
  if (context.team->cancelled.load(std::memory_order_acquire)) return true;
  const Taskgroup* const group = context.taskgroup;
  if (group == nullptr) return false;
  if (group->cancelled.load(std::memory_order_acquire)) return true;
  return group->of_work && group->outer != nullptr &&
         group->outer->cancelled.load(std::memory_order_acquire);
}

Taskgroup& begin_taskgroup(Context& context) {
  make_task(context);
  auto* const group = new Taskgroup;
  group->outer = context.taskgroup;
  group->scoped = context.team->group != nullptr;
  if (group->scoped) detail::open_scope(group->scope, {}, detail::ScopeKind::taskgroup);
  context.taskgroup = group;
  return *group;
}

namespace {

// Ends the program with the error of a scope: of its named events and progress functions, of failed
// requests, or of a task of imbrex in it.
[[noreturn, gnu::cold]] void refuse(const std::exception_ptr& error) {
  fatal("%s", detail::thrown_text(error).c_str());
}

}  // namespace

void end_taskgroup(Context& context) {
  Taskgroup* const group = context.taskgroup;
  if (group == nullptr) return;
  if (group->scoped) {
    if (const std::exception_ptr error = detail::close_scope(group->scope)) refuse(error);
  }
  context.taskgroup = group->outer;
  delete group;
}

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void GOMP_task(Function function, void* data, void (*copy)(void*, void*), long bytes,
               long alignment, bool if_clause, unsigned flags, void** depend, int priority,
               void* detach) {
  constexpr unsigned with_clauses =
      task_flag::final | task_flag::priority | task_flag::depend | task_flag::detach;
  if (if_clause && copy == nullptr && (flags & with_clauses) == 0) [[likely]] {
    begin_plain(function, data, bytes, alignment);
  } else {
    begin_any(function, data, copy, bytes, alignment, if_clause, flags, depend, priority, detach);
  }
}

void GOMP_taskwait() {
  const Context& context = current();
  if (context.team->group != nullptr && context.form != Form::call) imbrex::detail::wait_children();
}

void GOMP_taskwait_depend(void** depend) {
  (current().team->group != nullptr ? wait_for_accesses : wait_for_events)(depend);
}

// A taskwait without a waiting task: equivalent to an empty task with these dependences.
void GOMP_taskwait_depend_nowait(void** depend) {
  Context& context = current();
  if (!may_defer(context)) return;
  defer(context, {[](void*) {}, nullptr, nullptr, 0, 1}, {.depend = depend}, nullptr, nullptr);
}

void GOMP_taskyield() {
  if (current().team->group != nullptr) imbrex::detail::yield();
}

void GOMP_taskgroup_start() { (void)begin_taskgroup(current()); }
void GOMP_taskgroup_end() { end_taskgroup(current()); }

void omp_fulfill_event(void* handle) {
  auto& detached = *static_cast<Detached*>(handle);
  if (detached.fulfilled.exchange(true, std::memory_order_acq_rel)) {
    fatal("omp_fulfill_event: event %p has been fulfilled before", handle);
  }
  imbrex::detail::fire(detached.event);
  wake_all(&detached);
  drop(detached);
}

void omp_fulfill_event_(void* handle) { omp_fulfill_event(handle); }  // Fortran: by value

bool GOMP_cancellation_point(int which) {
  if (!settings().cancellation) return false;
  constexpr int loop = 2, sections = 4, taskgroup = 8;
  const Context& context = current();
  if ((which & (loop | sections)) != 0) {
    return context.team->work_cancelled.load(std::memory_order_acquire);
  }
  if ((which & taskgroup) != 0) return is_cancelled(context);
  return context.team->cancelled.load(std::memory_order_acquire);
}

}
#pragma GCC visibility pop
