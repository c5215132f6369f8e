// SPDX-License-Identifier: BSD-3-Clause
// Waits for the tasks that the running task has spawned: for all of them, or for those of a
// finish().
#include <fmt/format.h>

#include <new>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/stop.hpp"
#include "imbrex/error.hpp"
#include "sched/run/dead.hpp"
#include "sched/run/loop/loop.hpp"
#include "sched/run/loop/waiting.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/phasers/leave.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/task_races.hpp"
#include "sched/trigger/progress_functions.hpp"
#include "sched/waist/caller.hpp"
#include "task/access/depend.hpp"
#include "task/access/inheritance.hpp"
#include "task/failure.hpp"
#include "task/scope_stop.hpp"

namespace imbrex::detail {

namespace {

// The running task has waited: if none of its children is left, their table is emptied, and the
// descriptors that it kept are reused. Suspends if the destructor of a result waits.
void forget_children(Family& family) noexcept {
  if (family.table == nullptr) return;
  for (const Scope* scope = family.current; scope != nullptr; scope = scope->outer) {
    if (scope->outstanding() != 0) return;
  }
  task::Outcome outcome;
  family.table->forget_complete(outcome);
  sched::destroy_all(outcome);
}

// The tasks of `scope` are complete. If it has failures, the caller is told of them now, so it may
// write again the data that these tasks have not written.
[[gnu::cold, gnu::noinline]] void leave_scope(Family& family, const Scope& scope) noexcept {
  task::Outcome outcome;
  const bool is_stopped = scope.stop != nullptr && scope.stop->is_requested();
  family.table->end_scope(scope, scope.failures != nullptr || is_stopped, outcome);
  sched::destroy_all(outcome);
}

}  // namespace

void wait_children() {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] return visit_to_wait("taskwait", [] { wait_children(); });
  Worker& worker = *here;
  if (worker.callbacks != 0) [[unlikely]] return;  // all tasks that a callback has spawned have
                                                   // ended
  check_may_wait(worker, "taskwait");
  if (worker.task->family == nullptr) return;
  Family& family = *worker.task->family;
  if (records(family)) [[unlikely]] refuse_in_recording(family, "taskwait()");
  static constexpr WaitReason reason{.kind = WaitKind::children};
  if (worker.recorder.tracing()) [[unlikely]] sched::notes::awaits_children(worker, false);
  sched::await_scopes(family, task::Await::children, reason);
  forget_children(family);
}

void wait_descendants() {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] return visit_to_wait("barrier", [] { wait_descendants(); });
  Worker& worker = *here;
  check_may_wait(worker, "barrier");
  static constexpr WaitReason reason{.kind = WaitKind::children};
  if (Family* const family = worker.task->family) {
    if (worker.recorder.tracing()) [[unlikely]] sched::notes::awaits_children(worker, true);
    sched::await_descendants(*family, reason);
  }
}

ScopeMemory* innermost_scope() noexcept {
  if (is_outside() && sched::known_worker() != nullptr) [[unlikely]] {
    return sched::visit(Purpose::passes, [] { return innermost_scope(); },
                        [] { return static_cast<ScopeMemory*>(nullptr); });
  }
  if (is_outside() || !in_task()) return nullptr;
  const Family* const family = sched::current_worker()->task->family;
  if (family == nullptr || family->current->outer == nullptr) return nullptr;
  return reinterpret_cast<ScopeMemory*>(static_cast<Scope*>(family->current));
}

std::string why_not_innermost(const ScopeMemory* const memory) {
  const ScopeMemory* const innermost = innermost_scope();
  if (innermost == memory && memory != nullptr) return "";
  const auto* const wanted = reinterpret_cast<const Scope*>(memory);
  for (const auto* scope = reinterpret_cast<const Scope*>(innermost);
       scope != nullptr && memory != nullptr; scope = scope->outer) {
    if (scope != wanted) continue;
    return fmt::format("is not the innermost one of this task: {} must end first",
                       describe(*reinterpret_cast<const Scope*>(innermost)));
  }
  return "is not open in this task: it has ended, or was never begun, or was begun by another task "
         "or thread, which alone may end it";
}

void open_scope(ScopeMemory& memory, const std::source_location& where) {
  open_scope(memory, where, ScopeKind::finish);
}

[[nodiscard]] static const char* name_of(const ScopeKind kind) noexcept {
  switch (kind) {
    case ScopeKind::taskgroup: return "taskgroup";
    case ScopeKind::recording:
    case ScopeKind::iterate: return "iterate()";
    default: return "finish()";
  }
}

void open_scope(ScopeMemory& memory, const std::source_location& where, const ScopeKind kind) {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] {  // the first use of the runtime may be a scope
    return sched::visit_to_spawn([&] { open_scope(memory, where, kind); });
  }
  Worker& worker = spawning(*here, "finish");
  Family& family = family_of(worker, *worker.task);
  if (records(family)) [[unlikely]] refuse_in_recording(family, name_of(kind));
  auto* const scope = ::new (memory.bytes) Scope;
  scope->owner = worker.task;
  scope->where = where;
  scope->kind = kind;
  scope->outer = family.current;
  scope->finish = scope;
  scope->stop = scope->outer->stop;
  family.current = scope;
  if (worker.recorder.tracing()) [[unlikely]] sched::notes::opens_scope(worker);
}

std::stop_source open_stoppable_scope(ScopeMemory& memory, const bool on_error,
                                      const std::source_location& where, const ScopeKind kind) {
  open_scope(memory, where, kind);
  auto* const scope = std::launder(reinterpret_cast<Scope*>(memory.bytes));
  scope->stop = new task::Stop(*scope, scope->outer->stop, on_error);
  return scope->stop->source();
}

std::stop_source open_stoppable_scope(ScopeMemory& memory, const bool on_error,
                                      const std::source_location& where) {
  return open_stoppable_scope(memory, on_error, where, ScopeKind::finish);
}

std::stop_token stop_token() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr || worker->task == nullptr) return {};
  const Task& task = *worker->task;
  const Scope* const scope = task.family != nullptr ? task.family->current : task.scope;
  return scope != nullptr && scope->stop != nullptr ? scope->stop->source().get_token()
                                                    : std::stop_token();
}

namespace {

// Everything that was handed over to `scope` has arrived. Suspends if the destructor of a value
// waits.
[[gnu::cold, gnu::noinline]] void forget_owned(Family& family, const Scope& scope) noexcept {
  task::Hold* owned = nullptr;
  for (task::Hold** link = &family.holds; *link != nullptr;) {
    task::Hold& hold = **link;
    if (hold.scope != &scope) {
      link = &hold.following;
      continue;
    }
    *link = hold.following;
    hold.following = std::exchange(owned, &hold);
  }
  while (owned != nullptr) {
    task::Hold* const hold = std::exchange(owned, owned->following);
    Completion& source = *hold->source;
    sched::current_worker()->small.give(hold, base::slab_class(sizeof(task::Hold)));
    release(source);
  }
}

[[nodiscard]] Scope& scope_in(ScopeMemory& memory) noexcept {
  return *std::launder(reinterpret_cast<Scope*>(memory.bytes));
}

void end_inner_scopes(Scope& scope) noexcept;

// Everything of the scope has ended, except its failures.
Scope& end_scope(ScopeMemory& memory) noexcept {
  Scope& scope = scope_in(memory);
  end_inner_scopes(scope);
  if (scope.owner->family->registrations != nullptr) [[unlikely]] {  // the owner signals no more
    task::Outcome outcome;
    Worker& worker = *sched::current_worker();
    sched::leave_phasers(worker, *scope.owner, &scope, outcome);
    sched::act_on(worker, outcome);
  }
  static constexpr WaitReason reason{.kind = WaitKind::finish};
  Worker& here = *sched::current_worker();
  if (here.recorder.tracing()) [[unlikely]] sched::notes::ends_scope(here);
  sched::wait_for(here, scope, task::Await::descendants, reason);
  sched::task_races::waited(scope, task::Await::descendants);
  if (trace::happens_before::is_kept()) [[unlikely]] {
    sched::notes::follows(scope, task::Await::descendants);
  }
  Family& family = *scope.owner->family;
  family.current = scope.outer;
  forget_children(family);
  if (scope.owns) [[unlikely]] forget_owned(family, scope);
  // This comes before the failures, because a running progress function may still add one.
  if (scope.has_region.load(std::memory_order_relaxed)) [[unlikely]] sched::close_region(&scope);
  if (family.table != nullptr && (scope.failures != nullptr || family.table->has_failures()))
      [[unlikely]] {
    leave_scope(family, scope);
  }
  if (scope.stop != nullptr && scope.stop->is_of(&scope)) [[unlikely]] {
    delete std::exchange(scope.stop, nullptr);
  }
  return scope;
}

// Ends the scopes in `scope` that are still open: only code of C leaves one, because destructors of
// C++ end theirs. Their failures go to `scope`. Their memory is unchanged, because the program may
// still have its handle.
void end_inner_scopes(Scope& scope) noexcept {
  const Family& family = *scope.owner->family;
  while (family.current != &scope) [[unlikely]] {
    Scope& inner = end_scope(*reinterpret_cast<ScopeMemory*>(static_cast<Scope*>(family.current)));
    if (inner.failures == nullptr) continue;
    scope.fail_with(inner);
    inner.end_log();
  }
}

// The error for the scopes that are open in `outer`, by the innermost.
[[gnu::cold, gnu::noinline]] std::exception_ptr left_open(const Scope& outer,
                                                          const std::string& what) noexcept {
  int count = 0;
  const Scope& innermost = *outer.owner->family->current;
  for (const Scope* open = &innermost; open != &outer; open = open->outer) ++count;
  const char* const of = innermost.kind == ScopeKind::of_hcmpi ? "hc" : "imbrex";
  return std::make_exception_ptr(Error(fmt::format(
      "imbrex: {} without {}_finish_end() for {} {}_finish_begin(), the last of them at {}: imbrex "
      "has waited here for the tasks that were spawned since then",
      what, of, count, of, text_of(innermost.where))));
}

// The code of the running task has left scopes in `outer` open. `what` describes the end of the
// code.
[[gnu::cold, gnu::noinline]] void end_left_open(Scope& outer, const std::string& what) noexcept {
  Task& task = *outer.owner;
  task::Failure& failure = task::failure_of_task(task, left_open(outer, what));
  end_inner_scopes(outer);
  outer.fail(failure);
  task::drop(failure);
}

}  // namespace

std::uint32_t live_in_scope(const ScopeMemory& memory) noexcept {
  return std::launder(reinterpret_cast<const Scope*>(memory.bytes))->live();
}

std::exception_ptr close_scope(ScopeMemory& memory) noexcept {
  if (is_outside()) [[unlikely]] {  // the end of the runtime waits for this; fork's end does not
    return sched::visit(Purpose::waits, [&] { return close_scope(memory); },
                        [] { return std::exception_ptr(); });
  }
  if (const Scope& open = scope_in(memory); open.owner->family->current != &open) [[unlikely]] {
    std::exception_ptr error = left_open(
        open, fmt::format("{} in task {} ends", describe(open), describe_current_task()));
    abandon_scope(memory, error);
    return error;
  }
  Scope& scope = end_scope(memory);
  std::exception_ptr error = scope.take_error();
  scope.~Scope();
  return error;
}

void abandon_scope(ScopeMemory& memory, const std::exception_ptr& error) noexcept {
  if (is_outside()) [[unlikely]] {
    return sched::visit(Purpose::waits, [&] { abandon_scope(memory, error); }, [] {});
  }
  if (error != nullptr) {
    const auto& open = *std::launder(reinterpret_cast<const Scope*>(memory.bytes));
    task::note_thrown(open.kind == ScopeKind::taskgroup || open.kind == ScopeKind::iterate
                          ? describe(open)
                          : "the body of finish()" + in_parentheses(open.where),
                      error);
  }
  Scope& scope = end_scope(memory);
  if (const task::Untold untold = scope.take_untold(); !untold.empty()) {
    base::report(fmt::format("{} {}; its tasks failed too:{}", describe(scope),
                             scope.kind == ScopeKind::finish ? "rethrows the exception of its body"
                                                             : "has failed",
                             sched::lines(untold)));
  }
  scope.~Scope();
}

void end_scopes(ScopeMemory* const outermost, const char* const code) noexcept {
  if (!in_task()) return;  // the end of a callback handles its scopes
  if (is_outside()) [[unlikely]] {
    return sched::visit(Purpose::waits, [&] { end_scopes(outermost, code); }, [] {});
  }
  Family* const family = sched::current_worker()->task->family;
  if (family == nullptr) [[likely]] return;
  Scope& outer = outermost == nullptr ? family->children : scope_in(*outermost);
  if (family->current == &outer) [[likely]] return;
  const Scope* open = family->current;
  while (open != nullptr && open != &outer) open = open->outer;
  if (open == nullptr) return;  // the code has ended `outer`, too
  end_left_open(outer, fmt::format("{} {} returned", code, describe_current_task()));
}

}  // namespace imbrex::detail

namespace imbrex::sched {

// Only code of C leaves a scope open when it ends. If C++ has opened the innermost one, exit() was
// called in the body of a finish().
void end_scopes_of_thread() noexcept {
  if (is_outside()) {
    if (known_worker() == nullptr) return;
    return visit(Purpose::waits, [] { end_scopes_of_thread(); }, [] {});
  }
  const Task& root = *current_worker()->task;
  if (!root.is_root() || root.family == nullptr) return;
  task::Scope* outer = root.family->current;
  const auto by_cpp = [](const task::Scope& scope) {
    return scope.kind == detail::ScopeKind::finish || scope.kind == detail::ScopeKind::recording ||
           scope.kind == detail::ScopeKind::iterate;
  };
  while (outer->outer != nullptr && !by_cpp(*outer)) outer = outer->outer;
  if (root.family->current == outer) return;
  detail::end_left_open(*outer, fmt::format("{} ended", detail::describe_current_task()));
}

void end_open_scopes(Task& task) noexcept {
  task::Scope& all = task.family->children;
  if (all.outer != nullptr) refuse_to_return(task);
  std::exception_ptr error;
  if (task.failure == nullptr) {
    error = detail::left_open(
        all, fmt::format("the body of task {} returned", detail::describe_current_task()));
  }
  detail::end_inner_scopes(all);
  if (error != nullptr) task::fail_task(task, task::failure_of_task(task, error));
}

}  // namespace imbrex::sched
