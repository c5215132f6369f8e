// SPDX-License-Identifier: BSD-3-Clause
// Waits for the tasks that the running task has spawned: for all of them, or for those of a
// finish().
#include <fmt/format.h>

#include <new>
#include <utility>

#include "base/check.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "sched/run/dead.hpp"
#include "sched/run/loop.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/phasers/leave.hpp"
#include "sched/run/races.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/waiting.hpp"
#include "sched/trigger/trigger.hpp"
#include "sched/waist/calls.hpp"
#include "task/failure.hpp"

namespace imbrex::detail {

namespace {

// The running task has waited: if none of its children is left, their table is empty, and the
// descriptors that it kept are reused. Suspends, if the destructor of a result waits.
void forget_children(Family& family) noexcept {
  if (family.table == nullptr) return;
  for (const Scope* scope = family.current; scope != nullptr; scope = scope->outer) {
    if (scope->outstanding() != 0) return;
  }
  task::Outcome outcome;
  family.table->forget_complete(outcome);
  sched::destroy_all(outcome);
}

// The tasks of `scope` are complete, and the caller is told now which of them failed. So it may
// write again what they have not written.
[[gnu::cold, gnu::noinline]] void forget_failures(Family& family, const Scope& scope) noexcept {
  if (family.table == nullptr) return;
  task::Outcome outcome;
  family.table->forget_failures(scope, outcome);
  sched::destroy_all(outcome);
}

}  // namespace

void wait_children() {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] return visit_to_wait("taskwait", [] { wait_children(); });
  Worker& worker = *here;
  if (worker.callbacks != 0) [[unlikely]] return;  // what a callback has spawned has ended
  check_may_wait(worker, "taskwait");
  if (worker.task->family == nullptr) return;
  Family& family = *worker.task->family;
  static constexpr WaitReason reason{.kind = WaitKind::children};
  sched::await_scopes(family, task::Await::children, reason);
  forget_children(family);
}

void wait_descendants() {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] return visit_to_wait("barrier", [] { wait_descendants(); });
  Worker& worker = *here;
  check_may_wait(worker, "barrier");
  static constexpr WaitReason reason{.kind = WaitKind::children};
  if (Family* const family = worker.task->family) sched::await_descendants(*family, reason);
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

void open_scope(ScopeMemory& memory, const std::source_location& where) {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] {  // the first use may be a scope
    return sched::visit_to_spawn([&] { open_scope(memory, where); });
  }
  Worker& worker = spawning(*here, "finish");
  Family& family = family_of(worker, *worker.task);
  auto* const scope = ::new (memory.bytes) Scope;
  scope->owner = worker.task;
  scope->where = where;
  scope->outer = family.current;
  scope->finish = scope;
  family.current = scope;
}

namespace {

// What was handed over to `scope` has come. Suspends, if the destructor of a value waits.
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

// All that belongs to the scope has ended, except its failures.
Scope& end_scope(ScopeMemory& memory) noexcept {
  Scope& scope = scope_in(memory);
  end_inner_scopes(scope);
  if (scope.owner->family->registrations != nullptr) [[unlikely]] {  // the owner signals no more
    task::Outcome outcome;
    Worker& worker = *sched::current_worker();
    sched::leave_phasers(worker, *scope.owner, &scope, outcome);
    sched::settle(worker, outcome);
  }
  static constexpr WaitReason reason{.kind = WaitKind::finish};
  sched::wait_for(*sched::current_worker(), scope, task::Await::descendants, reason);
  sched::races::waited(scope, task::Await::descendants);
  Family& family = *scope.owner->family;
  family.current = scope.outer;
  forget_children(family);
  if (scope.owns) [[unlikely]] forget_owned(family, scope);
  // This comes before the failures: a progress function that has not ended may still add one.
  if (scope.has_region.load(std::memory_order_relaxed)) [[unlikely]] sched::close_region(&scope);
  if (scope.failures != nullptr) [[unlikely]] forget_failures(family, scope);
  return scope;
}

// Ends the scopes in `scope` that are still open: only code of C leaves one, which has no
// destructors that would end it. Their failures are those of `scope`. Their memory stays as it is:
// the program may still have its handle.
void end_inner_scopes(Scope& scope) noexcept {
  const Family& family = *scope.owner->family;
  while (family.current != &scope) [[unlikely]] {
    Scope& inner = end_scope(*reinterpret_cast<ScopeMemory*>(static_cast<Scope*>(family.current)));
    if (inner.failures == nullptr) continue;
    scope.fail_with(inner);
    inner.end_log();
  }
}

// What is to be said of the innermost of the scopes that are open in `outer`.
[[gnu::cold, gnu::noinline]] std::exception_ptr left_open(const Scope& outer,
                                                          const std::string& what) noexcept {
  int count = 0;
  const Scope& innermost = *outer.owner->family->current;
  for (const Scope* open = &innermost; open != &outer; open = open->outer) ++count;
  return std::make_exception_ptr(Error(fmt::format(
      "imbrex: {} without imbrex_finish_end() for {} imbrex_finish_begin(), the last of them at "
      "{}: the tasks that were spawned since then have been waited for here",
      what, count, text_of(innermost.where))));
}

}  // namespace

std::uint32_t live_in_scope(const ScopeMemory& memory) noexcept {
  return std::launder(reinterpret_cast<const Scope*>(memory.bytes))->live();
}

std::exception_ptr close_scope(ScopeMemory& memory) noexcept {
  if (is_outside()) [[unlikely]] {  // the end of the runtime waits for this; that of fork not
    return sched::visit(Purpose::waits, [&] { return close_scope(memory); },
                        [] { return std::exception_ptr(); });
  }
  if (const Scope& open = scope_in(memory); open.owner->family->current != &open) [[unlikely]] {
    std::exception_ptr error = left_open(
        open, fmt::format("{} in task {} ends",
                          open.where.line() == 0 ? "a taskgroup of OpenMP"
                                                 : "the finish() at " + text_of(open.where),
                          describe_current_task()));
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
    task::note_thrown("the body of finish()", open.where, error);
  }
  Scope& scope = end_scope(memory);
  const std::vector<std::string> untold = scope.take_untold();
  if (!untold.empty()) {
    base::report(fmt::format("the finish() at {}:{} throws what its body threw; its tasks failed "
                             "too:{}",
                             scope.where.file_name(), scope.where.line(), sched::lines(untold)));
  }
  scope.~Scope();
}

}  // namespace imbrex::detail

namespace imbrex::sched {

void end_open_scopes(Task& task) noexcept {
  task::Scope& all = task.family->children;
  std::exception_ptr error;
  if (task.failure == nullptr) {
    error = detail::left_open(
        all, fmt::format("the body of task {} returned", detail::describe_current_task()));
  }
  detail::end_inner_scopes(all);
  if (error != nullptr) task::fail_task(task, task::failure_of_task(task, error));
}

}  // namespace imbrex::sched
