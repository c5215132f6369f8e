// SPDX-License-Identifier: BSD-3-Clause
#include "omp/tasks/tasks.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/region/gate.hpp"
#include "omp/environment/others.hpp"
#include "omp/region/ident.hpp"
#include "omp/tasks/llvm_task.hpp"

namespace imbrex::omp {

namespace {

void drop(Detached& detached) noexcept {
  if (detached.references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &detached;
}

// The closure: this, and the task's data.
struct Explicit : Context {
  Function function = nullptr;
  void* data = nullptr;
  Detached* detached = nullptr;
  bool constructed = false;  // `function` destroys or frees something of the data
};

// Runs a task of which a tool hears.
[[gnu::cold, gnu::noinline]] void run_heard(Explicit& task) {
  tools::TaskRecord* const record = task.record;
  const bool detached = task.detached != nullptr;
  task.number = detail::place_in(*task.team->group);
  if (suspending() == Suspending::nowhere) [[unlikely]] detail::set_blocking(true);
  tools::begin_task(record, task.number);
  if (detached) {
    detail::release_after(task.detached->event);
    drop(*task.detached);
  }
  const bool cancelled = is_cancelled(task);
  if (cancelled) tools::cancel(tools::cancel_flag::taskgroup | tools::cancel_flag::discarded_task);
  if (task.constructed || !cancelled) tools::call(task.function, task.data);
  const tools::Status ended = is_cancelled(task) ? tools::Status::cancel
                              : detached         ? tools::Status::detach
                                                 : tools::Status::complete;
  tools::end_task(record, ended);
}

void run(void* const closure) noexcept {
  auto& task = *static_cast<Explicit*>(closure);
  if (task.record != nullptr) [[unlikely]] return run_heard(task);
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
  const auto& task = *static_cast<const Explicit*>(closure);
  if (task.function == &run_llvm_task) return llvm_routine(task.data);
  return reinterpret_cast<const void*>(task.function);
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

// The record of a task that is about to be created; null without a tool.
[[gnu::cold, gnu::noinline]] tools::TaskRecord* make_record(const TaskClauses& clauses,
                                                            const bool is_final,
                                                            const bool undeferred) {
  const unsigned flags = (is_final ? tools::task_flag::final : 0) |
                         (undeferred ? tools::task_flag::undeferred : 0);
  tools::TaskRecord* const record = tools::create_task(flags, told(clauses.depend));
  if (record != nullptr && clauses.detached != nullptr && !undeferred) {
    clauses.detached->record = record;
    record->owners.fetch_add(1, std::memory_order_relaxed);  // the event
  }
  return record;
}

constexpr std::size_t closure_alignment = 64;  // of detail::create()

// True if tasks of `context` may be deferred at all.
bool may_defer(const Context& context) noexcept {
  return context.team->group != nullptr && !context.is_final;
}

[[gnu::always_inline]] inline void defer_with(const std::span<const detail::AccessSpec> accesses,
                                              const Context& context, const TaskData& data,
                                              const TaskClauses& clauses, const Adjust adjust,
                                              const void* const argument,
                                              tools::TaskRecord* const record) {
  const std::size_t alignment = std::max<std::size_t>(static_cast<std::size_t>(data.alignment), 1);
  const std::size_t offset = aligned(sizeof(Explicit), std::min(alignment, closure_alignment));
  const std::size_t slack = alignment > closure_alignment ? alignment : 0;
  const std::size_t bytes = offset + static_cast<std::size_t>(data.bytes) + slack;
  const Construct construct = construct_at(clauses.where);
  const detail::TaskSpec spec{.name = construct.task,
                              .where = construct.place,
                              .priority = clauses.priority,
                              .tied = true,
                              .accesses = accesses,
                              .distinct = true};
  void* const closure = accesses.empty()
                            ? detail::create(spec, explicit_body, bytes)
                            : detail::create_with_accesses(spec, explicit_body, bytes);
  auto& task = *::new (closure) Explicit{child_of(context, clauses.is_final, Form::task)};
  task.function = data.function;
  task.constructed = data.copy != nullptr || data.owned;
  task.data = reinterpret_cast<void*>(
      aligned(reinterpret_cast<std::uintptr_t>(closure) + offset, alignment));
  task.detached = clauses.detached;
  copy_data(task.data, data);
  if (adjust != nullptr) adjust(task.data, argument);
  task.record = record;
  (void)(accesses.empty() ? detail::submit(closure, false)
                          : detail::submit_with_accesses(closure, false));
}

// `record`: for a tool.
void defer(Context& context, const TaskData& data, const TaskClauses& clauses, const Adjust adjust,
           const void* const argument, tools::TaskRecord* const record) {
  make_task(context);
  if (!clauses.depend.any()) {
    defer_with({}, context, data, clauses, adjust, argument, record);
  } else {
    context.has_accesses = 1;
    Accesses accesses(clauses.depend);
    defer_with(accesses.span(), context, data, clauses, adjust, argument, record);
  }
}

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
void call_body(const Function function, void* const data) noexcept {
  if (tools::on()) [[unlikely]] return tools::call(function, data);
  function(data);
}

// Begins an included task, whose Context is complete, in `outer`. If only OpenMP's own constructs
// wait, it is a call, as under libgomp, until it needs to be a task of the runtime. Otherwise it is
// a task from the start, so that its children, waits and events belong to it.
[[gnu::always_inline]] inline void begin_in(Included& child, Context& outer,
                                            const bool is_call) {
  child.outer = &outer;
  child.before = std::exchange(outer.included, &child);
  if (!is_call) make_task(child);
  // Outside of regions it stays a call of the thread's code, which may open scopes of imbrex.
  child.may_open = !is_call && child.form == Form::call;
  child.scope = child.may_open ? detail::innermost_scope() : nullptr;
}

[[gnu::always_inline]] inline void end_in(Included& child) {
  if (child.form == Form::included) end_task(child);
  if (child.may_open) detail::end_scopes(child.scope, "an undeferred task of OpenMP in");
  child.outer->included = child.before;
}

template <class Call>
[[gnu::always_inline]] inline void run_included(Context& outer, const Context& context,
                                                const bool is_final, const bool is_call,
                                                tools::TaskRecord* const record, Call call) {
  Included child{child_of(context, is_final, Form::call)};
  child.record = record;
  // First: what follows may suspend, and the child is found in `outer` then.
  if (record != nullptr) [[unlikely]] tools::begin_task(record, child.number);
  begin_in(child, outer, is_call);
  call();
  end_in(child);
  if (record != nullptr) [[unlikely]] tools::end_task(record, tools::Status::complete);
}

void wait_fulfilled(Detached& detached) {
  wait_until(&detached, "omp_fulfill_event",
             [&] { return detached.fulfilled.load(std::memory_order_acquire); });
  drop(detached);
}

void include(Context& context, const TaskData& data, const TaskClauses& clauses,
             const Adjust adjust, const void* const argument, tools::TaskRecord* const record) {
  if (clauses.depend.any()) wait_for(context, clauses.depend);
  Context& outer = context.form == Form::task ? context : around();
  const bool is_final = clauses.is_final || context.is_final;
  run_included(outer, context, is_final, only_openmp_waits(), record, [&] {
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
  if (clauses.detached == nullptr) return;
  // LLVM's compilers return the event before the task is created: outside of regions the code that
  // fulfils it may follow.
  if (data.owned && context.team->group == nullptr) {
    initial().unfulfilled.emplace_back(clauses.detached,
                                       [](Detached* const detached) noexcept { drop(*detached); });
  } else {
    wait_fulfilled(*clauses.detached);
  }
}

// Tasks outside of regions are complete, but for their events.
void wait_unfulfilled() {
  if (detail::in_callback()) return;  // they may be tasks of the code that the callback interrupts
  for (DetachedReference& detached : std::exchange(initial().unfulfilled, {})) {
    wait_fulfilled(*detached.release());
  }
}

// Once a thread has enough tasks queued a further one is cheapest as a call of its creator:
// libgomp's rule. A call that waits keeps its creator from going on, so the rule is for programs in
// which nothing can wait for the next steps of the creator.
bool has_enough_queued() noexcept {
  bool enough = false;
  return only_openmp_waits() && ((void)detail::running_body(enough), enough);
}

// A thread alone in its team executes each task of LLVM's compilers at its creation: libomp's rule,
// for the same programs. Then all earlier siblings are complete, and a dependence has nothing to
// wait for, unless one was queued: its event may be yet to come.
bool is_call_of_one(const Context& context, const bool owned) noexcept {
  return owned && context.team->size == 1 && context.has_accesses == 0 &&
         only_openmp_waits() && detail::count_call();
}

bool may_call(const Context& context, const TaskData& data, const TaskClauses& clauses) noexcept {
  if (clauses.detached != nullptr) return false;
  return (!clauses.depend.any() && has_enough_queued()) || is_call_of_one(context, data.owned);
}

}  // namespace

void begin_task(Context& context, const TaskData& data, const TaskClauses& clauses,
                const bool deferrable, const Adjust adjust, const void* const argument) {
  const bool undeferred = !deferrable || !may_defer(context);
  tools::TaskRecord* record = nullptr;
  if (tools::on()) [[unlikely]] {
    record = make_record(clauses, clauses.is_final || context.is_final, undeferred);
  }
  if (undeferred || may_call(context, data, clauses)) {
    include(context, data, clauses, adjust, argument, record);
  } else {
    defer(context, data, clauses, adjust, argument, record);
  }
}

std::unique_ptr<Included> begin_included(Context& context, const bool is_final) {
  Context& outer = context.form == Form::task ? context : around();
  auto task = std::make_unique<Included>(
      child_of(context, is_final || context.is_final, Form::call));
  if (tools::on()) [[unlikely]] task->record = make_record({}, task->is_final, true);
  if (task->record != nullptr) [[unlikely]] tools::begin_task(task->record, task->number);
  begin_in(*task, outer, only_openmp_waits());
  return task;
}
void end_included(Included& task) {
  end_in(task);
  if (task.record != nullptr) [[unlikely]] tools::end_task(task.record, tools::Status::complete);
}

namespace {

// What begin_without_clauses() needs of a task of each compiler. call() lets no exception out, as
// call_body() does not.
struct GnuTask {
  static constexpr bool owned = false;  // as in TaskData
  Function function;
  void* argument;
  long bytes;
  long alignment;
  void call() const noexcept { function(argument); }
  [[nodiscard]] TaskData data() noexcept { return {function, argument, nullptr, bytes, alignment}; }
};
struct LlvmCall {
  static constexpr bool owned = true;
  LlvmTask* task;
  void call() const noexcept { run_block(block_of(task)); }
  [[nodiscard]] TaskData data() noexcept { return data_of(task); }
};

template <class Task>
[[gnu::always_inline]] inline void begin_without_clauses(Task task, const Ident* const where) {
  bool enough = false;
  Context& outer = only_openmp_waits() ? context_of(detail::running_body(enough)) : around();
  Context& context = innermost(outer);
  if (!Task::owned && is_cancelled(context)) return;
  if (!may_defer(context)) {
    include(context, task.data(), {}, nullptr, nullptr, nullptr);
  } else if (enough || is_call_of_one(context, Task::owned)) {
    run_included(outer, context, false, true, nullptr, [&] { task.call(); });
  } else {
    defer(context, task.data(), {.where = where}, nullptr, nullptr, nullptr);
  }
}

// The task of GCC's compilers.
[[gnu::noinline]] void begin_gnu(const Function function, void* const data, const long bytes,
                                 const long alignment) {
  begin_without_clauses(GnuTask{function, data, bytes, alignment}, nullptr);
}

}  // namespace

void begin_plain(LlvmTask& task, const Ident* const where) {
  begin_without_clauses(LlvmCall{&task}, where);
}

namespace {

// The handle goes to the variable of the clause, and to the first word of the data.
Detached* make_detached(void* const data, void** const detach) {
  auto* const detached = new Detached;
  *detach = detached;
  if (data != nullptr) *static_cast<void**>(data) = detached;
  return detached;
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
              .depend = {.gnu = (flags & task_flag::depend) != 0 ? depend : nullptr},
              .detached = (flags & task_flag::detach) != 0
                              ? make_detached(data, static_cast<void**>(detach))
                              : nullptr},
             if_clause, nullptr, nullptr);
}

}  // namespace

namespace {

[[gnu::cold, gnu::noinline]] void begin_heard(
    const Function function, void* const data, void (*const copy)(void*, void*), const long bytes,
    const long alignment, const bool if_clause, const unsigned flags, void** const depend,
    const int priority, void* const detach, const tools::Call call) {
  tools::enter_task(call, told_flags(flags));
  begin_any(function, data, copy, bytes, alignment, if_clause, flags, depend, priority, detach);
}

}  // namespace

void fulfill(Detached& detached) {
  if (detached.fulfilled.exchange(true, std::memory_order_acq_rel)) {
    fatal("omp_fulfill_event: event %p has been fulfilled before", static_cast<void*>(&detached));
  }
  if (detached.record != nullptr) [[unlikely]] tools::fulfill(detached.record);
  detail::fire(detached.event);
  wake_all(&detached);
  drop(detached);
}

namespace {

[[gnu::cold, gnu::noinline]] tools::TaskRecord* tell_taskwait(const Depends& depend,
                                                              const bool waits) {
  const unsigned flags = tools::task_flag::taskwait | tools::task_flag::mergeable |
                         (waits ? tools::task_flag::undeferred : 0);
  return tools::create_task(flags, told(depend));
}

}  // namespace

void taskwait_depend(const Context& context, const Depends& depend) {
  tools::TaskRecord* const record = tools::on() ? tell_taskwait(depend, true) : nullptr;
  wait_for(context, depend);
  if (record != nullptr) [[unlikely]] tools::end_taskwait(record);
}

void defer_empty(Context& context, const Depends& depend) {
  if (!may_defer(context)) return;
  if (tools::on()) [[unlikely]] tools::end_taskwait(tell_taskwait(depend, false));
  defer(context, {[](void*) {}, nullptr, nullptr, 0, 1}, {.depend = depend}, nullptr, nullptr,
        nullptr);
}

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
  if (tools::on()) [[unlikely]] tools::begin_sync_region(tools::Sync::taskgroup);
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
  if (tools::on()) [[unlikely]] tools::begin_sync_wait(tools::Sync::taskgroup);
  if (group->scoped) {
    if (const std::exception_ptr error = detail::close_scope(group->scope)) refuse(error);
  } else {
    wait_unfulfilled();
  }
  context.taskgroup = group->outer;
  delete group;
  if (tools::on()) [[unlikely]] tools::end_sync(tools::Sync::taskgroup);
}

void taskwait() {
  if (tools::on()) [[unlikely]] tools::begin_sync(tools::Sync::taskwait);
  const Context& context = current();
  if (context.team->group == nullptr) {
    wait_unfulfilled();
  } else if (context.form != Form::call) {
    detail::wait_children();
  }
  if (tools::on()) [[unlikely]] tools::end_sync(tools::Sync::taskwait);
}

void taskyield() {
  if (current().team->group != nullptr) detail::yield();
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
  if (tools::on()) [[unlikely]] {
    return begin_heard(function, data, copy, bytes, alignment, if_clause, flags, depend, priority,
                       detach, tools::this_call());
  }
  if (if_clause && copy == nullptr && (flags & with_clauses) == 0) [[likely]] {
    begin_gnu(function, data, bytes, alignment);
  } else {
    begin_any(function, data, copy, bytes, alignment, if_clause, flags, depend, priority, detach);
  }
}

void GOMP_taskwait() {
  tools::entered();
  taskwait();
}

void GOMP_taskwait_depend(void** depend) {
  tools::entered();
  taskwait_depend(current(), {.gnu = depend});
}

// A taskwait without a waiting task: equivalent to an empty task with these dependences.
void GOMP_taskwait_depend_nowait(void** depend) {
  tools::entered();
  defer_empty(current(), {.gnu = depend});
}

void GOMP_taskyield() {
  tools::entered();
  taskyield();
}

void GOMP_taskgroup_start() {
  tools::entered();
  (void)begin_taskgroup(current());
}
void GOMP_taskgroup_end() {
  tools::entered();
  end_taskgroup(current());
}

void omp_fulfill_event(void* handle) { fulfill(*static_cast<Detached*>(handle)); }

void omp_fulfill_event_(void* handle) { omp_fulfill_event(handle); }  // Fortran: by value


}
#pragma GCC visibility pop
