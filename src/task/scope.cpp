// SPDX-License-Identifier: BSD-3-Clause
#include "task/scope.hpp"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "imbrex/error.hpp"
#include "task/depend.hpp"
#include "task/lineage.hpp"

namespace imbrex::task {

namespace {

// The owner of `scope` waited for what has just happened. A task that waits becomes ready; one
// that has ended is returned: its life has ended too.
Task* wake_owner(Scope& scope, ReadyList& ready) noexcept {
  Task& owner = *scope.owner;
  if (scope.awaiting == Await::life) return &owner;
  if (owner.release()) make_ready(owner, ready);
  return nullptr;
}

// All holds are released: what their sources wrote before is visible by way of `holds`.
void take_error_of_holds(Task& task) noexcept {
  for (const Hold* hold = task.family->holds; hold != nullptr; hold = hold->following) {
    if (hold->source == nullptr || !hold->source->error) continue;
    if (task.ops->destroy != nullptr) task.ops->destroy(task.closure());  // the body's result
    task.error = hold->source->error;
    return;
  }
}

// The life of `task` has ended. A loop, not a recursion: chains of ancestors may be long.
void end_life(Task* task, Outcome& outcome) noexcept {
  while (task != nullptr) {
    if (task->root) {  // of a foreign thread that has ended: nobody counts it
      lose(*task, outcome);
      return;
    }
    Scope& scope = *task->scope;
    if (task->family != nullptr) {
      Scope& children = task->family->children;
      if (children.errors != 0) scope.fail(children.error, children.errors);
    }
    lose(*task, outcome);  // `scope` is its parent's, which lives
    task = scope.count_finished(Scope::one_deep) ? wake_owner(scope, outcome.ready) : nullptr;
  }
}

}  // namespace

[[gnu::noinline]] void flush(Tally& tally, Outcome& outcome) noexcept {
  if (tally.scope == nullptr) return;
  Scope& scope = *std::exchange(tally.scope, nullptr);
  if (scope.count_finished(std::exchange(tally.amount, 0))) {
    end_life(wake_owner(scope, outcome.ready), outcome);
  }
}

namespace {

// As long as all that the life of an ended parent waits for is `task`, `task` takes its place in
// the parent's scope, and the parent's life ends uncounted. So a chain of tasks that each spawn the
// next and end keeps no ancestors.
// Nobody else can be changing what is read here: with one outstanding, which is `task`, and the
// owner ended, nobody is left to count or to spawn there; and `task.scope` is read next by who ends
// the life of `task`, after its begin_wait().
void take_place_of_ended_parents(Task& task, Outcome& outcome) noexcept {
  for (;;) {
    Scope& scope = *task.scope;
    // acquire: pairs with the parent's begin_wait()
    const std::uint64_t word = scope.finished.load(std::memory_order_acquire);
    if (Scope::deep_part(word) != -1 || scope.awaiting != Await::life || scope.owner->root) return;
    Task& parent = *scope.owner;
    if (scope.errors != 0) parent.scope->fail(scope.error, scope.errors);
    task.scope = parent.scope;
    lose(parent, outcome);  // `scope` is its
  }
}

// `task` has had children; `left` references of the table's are ours.
[[gnu::noinline]] void complete_parent(Task& task, const std::uint32_t left, Tally& tally,
                                       Outcome& outcome) noexcept {
  // Never the last: the run's is kept.
  if (left != 0) task.references.fetch_sub(left, std::memory_order_acq_rel);
  // Counted before our life may end: the last descendant, elsewhere, may end the scope's.
  tally.amount += Scope::one_complete;
  flush(tally, outcome);
  take_place_of_ended_parents(task, outcome);
  if (task.family->children.begin_wait(Await::life)) end_life(&task, outcome);
}

}  // namespace

void complete(Task& task, Tally& tally, Outcome& outcome) noexcept {
  Scope& scope = *task.scope;
  if (task.held && !task.error) [[unlikely]] take_error_of_holds(task);
  if (task.error) [[unlikely]] scope.fail(task.error, 1);
  if (tally.scope != &scope) [[unlikely]] {
    flush(tally, outcome);
    tally.scope = &scope;
  }
  task.state.store(State::complete, std::memory_order_release);  // from running or ended
  if (task.accesses != nullptr) give_back_mutexes(task, outcome.ready);
  std::uintptr_t head = EventWord::fired;
  (void)event::exchange(task.event, head);
  Waiter* const first = event::first_waiter(head);
  if (task.reach == Reach::flow) [[unlikely]] forget_edges(first);
  event::let_go_all(first, outcome);
  const std::uint32_t left = (head & event::left_bit) != 0 ? 1 : 0;
  if (task.family != nullptr) [[unlikely]] {
    complete_parent(task, left, tally, outcome);
    return;
  }
  tally.amount += Scope::one_complete | Scope::one_deep;
  if (drop(task, 1 + left)) outcome.dead.push(task);
}

void hold_completion(Task& task, EventWord& event, Hold& hold) noexcept {
  if (!task.held) {
    task.held = true;
    task.holds.store(1, std::memory_order_relaxed);  // the body's; published with the waiter
  }
  task.holds.fetch_add(1, std::memory_order_relaxed);  // we hold the body's: not the last
  hold.task = &task;
  hold.notify = [](Waiter& waiter, Outcome& outcome) noexcept {
    Task& held = *waiter.task;
    if (held.holds.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Tally tally;
    complete(held, tally, outcome);
    flush(tally, outcome);
  };
  if (!event::add(event, hold)) task.holds.fetch_sub(1, std::memory_order_relaxed);
}

// Nobody waits, so no field is negative. relaxed: the owner's wait, the next subtraction, acquires
// what was released by the additions before this one too.
void Scope::forget_finished() noexcept {
  const std::uint64_t known = finished.load(std::memory_order_relaxed);
  finished.fetch_sub(known, std::memory_order_relaxed);
  spawned -= known;
}

[[gnu::noinline]] void Scope::fail(const std::exception_ptr& failure,
                                   const std::uint32_t count) noexcept {
  const std::lock_guard guard(lock);
  if (!error) error = failure;
  errors += count;
}

std::exception_ptr Scope::take_error() noexcept {
  const std::lock_guard guard(lock);
  if (errors < 2) return error;
  try {
    std::rethrow_exception(error);
  } catch (const Error& first) {
    // A derived class keeps its type and its own text.
    if (typeid(first) != typeid(Error)) return error;
    return std::make_exception_ptr(
        Error(fmt::format("{} (and {} other tasks of this scope failed)", first.what(),
                          errors - 1)));
  } catch (...) {
    return error;
  }
}

}  // namespace imbrex::task
