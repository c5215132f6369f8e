// SPDX-License-Identifier: BSD-3-Clause
#include "task/ending/complete.hpp"

#include <utility>

#include "task/access/accesses.hpp"
#include "task/access/inheritance.hpp"
#include "task/access/releases.hpp"
#include "task/ending/instance.hpp"
#include "task/lineage.hpp"
#include "trace/happens_before.hpp"
#include "trace/races.hpp"

namespace imbrex::task {

namespace order = trace::happens_before;

namespace {

// The owner of `scope` waited for the event that has just happened. A waiting owner becomes ready;
// an owner that has ended is returned, because its life has ended, too.
Task* wake_owner(Scope& scope, ReadyList& ready) noexcept {
  Task& owner = *scope.owner;
  if (scope.awaiting == Await::life) return &owner;
  if (owner.release()) make_ready(owner, ready);
  return nullptr;
}

// All holds are released: the writes of their sources are visible through `holds`.
void take_error_of_holds(Task& task) noexcept {
  for (const Hold* hold = task.family->holds; hold != nullptr; hold = hold->following) {
    if (hold->scope != nullptr || hold->source == nullptr) continue;
    if (hold->source->failure == nullptr) continue;
    take(*hold->source->failure);
    fail_task(task, failure_of_task(task, exception_of(*hold->source->failure)));
    task.failed_late = true;
    return;
  }
}

// The life of `task` has ended. A loop, not a recursion: chains of ancestors may be long.
void end_life(Task* task, Outcome& outcome) noexcept {
  while (task != nullptr) {
    if (task->is_root()) {  // the code of a foreign thread that has ended: no scope counts it
      lose(*task, outcome);
      return;
    }
    if (is_node(*task)) [[unlikely]] return end_instance(*task, outcome);
    Scope& scope = *task->scope;
    if (task->family != nullptr && task->family->children.failures != nullptr) [[unlikely]] {
      scope.fail_with(task->family->children);
    }
    lose(*task, outcome);  // `scope` is its parent's, and the parent lives
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

// If `task` is all that the life of an ended parent waits for, `task` takes its place in the
// parent's scope, and the parent's life ends uncounted. A chain of tasks that each spawn the next
// one and end therefore keeps no ancestors.
//
// No other thread changes the values that are read here: with one task outstanding, which is
// `task`, and the owner ended, no thread can count or spawn there. The next reader of `task.scope`
// is the thread that ends the life of `task`, after its begin_wait().
void take_place_of_ended_parents(Task& task, Outcome& outcome) noexcept {
  for (;;) {
    Scope& scope = *task.scope;
    // acquire: pairs with the parent's begin_wait()
    const std::uint64_t word = scope.finished.load(std::memory_order_acquire);
    if (Scope::deep_part(word) != -1 || scope.awaiting != Await::life ||
        scope.owner->is_root() || is_node(*scope.owner)) {
      return;
    }
    Task& parent = *scope.owner;
    if (scope.failures != nullptr) [[unlikely]] parent.scope->fail_with(scope);
    task.scope = parent.scope;
    lose(parent, outcome);  // `scope` is the parent's
  }
}

// `task` has had children; this function owns `left` references of the table.
[[gnu::noinline]] void complete_parent(Task& task, const std::uint32_t left, Tally& tally,
                                       Outcome& outcome) noexcept {
  // Never the last references: the run has one.
  if (left != 0) task.references.fetch_sub(left, std::memory_order_acq_rel);
  // Counted before the life may end: the last descendant, on another worker, may end the scope's.
  tally.amount += Scope::one_complete;
  flush(tally, outcome);
  take_place_of_ended_parents(task, outcome);
  if (task.family->children.begin_wait(Await::life)) end_life(&task, outcome);
}

}  // namespace

namespace {

// The event of the complete `task` has fired.
struct Fired {
  Waiter* waiters;         // to be released
  std::uint32_t left;      // number of references that the caller owns
};
inline Fired fire_end(Task& task, ReadyList& ready) noexcept {
  if (task.failure != nullptr) [[unlikely]] task.scope->fail(*task.failure);
  task.state.store(State::complete, std::memory_order_release);  // from running or ended
  std::uintptr_t head = EventWord::fired;
  (void)event::exchange(task.event, head);
  Waiter* first = event::first_waiter(head);
  if ((head & event::swept_bit) != 0) [[unlikely]] first = fire_apart(task, first);
  if (task.accesses != nullptr) end_accesses(task, first, ready);
  if (task.reach == Reach::flow) [[unlikely]] forget_edges(first);
  return {first, (head & event::left_bit) != 0 ? 1u : 0u};
}

inline void count_end(Task& task, const std::uint32_t left, Tally& tally,
                      Outcome& outcome) noexcept {
  if (task.family != nullptr) [[unlikely]] {
    complete_parent(task, left, tally, outcome);
    return;
  }
  tally.amount += Scope::one_complete | Scope::one_deep;
  if (drop(task, 1 + left)) outcome.dead.push(task);
}

// What only some tasks need before they complete. True: `task` is a node, and has completed.
[[gnu::cold, gnu::noinline]] bool complete_by_wish(Task& task, Outcome& outcome) noexcept {
  if (task.held() && task.failure == nullptr) take_error_of_holds(task);
  if (!is_node(task)) return false;
  complete_instance(task, outcome);
  return true;
}

inline void tally_for(Scope& scope, Tally& tally, Outcome& outcome) noexcept {
  if (tally.scope == &scope) [[likely]] return;
  flush(tally, outcome);
  tally.scope = &scope;
}

}  // namespace

void complete(Task& task, Tally& tally, Outcome& outcome) noexcept {
  constexpr auto looked_at = Task::holds_itself | Task::repeats;
  if ((task.wishes & looked_at) != 0 && complete_by_wish(task, outcome)) [[unlikely]] return;
  tally_for(*task.scope, tally, outcome);
  const Fired fired = fire_end(task, outcome.ready);
  event::let_go_all(fired.waiters, outcome);
  count_end(task, fired.left, tally, outcome);
}

namespace {

char holds;  // its address is a key

// A hold ends: perhaps what a message has brought ends it.
void order_hold() noexcept {
  if (order::is_kept()) [[unlikely]] order::before(order::unknown, &holds);
}
// A hold of `task` has ended at once.
void order_ended_hold(const Task& task) noexcept {
  if (order::is_kept()) [[unlikely]] order::follow_everything(task.id);
}

}  // namespace

const void* key_of_holds() noexcept { return &holds; }

void hold_completion(Task& task, EventWord& event, Hold& hold) noexcept {
  if (!task.held()) {
    task.wishes |= Task::holds_itself;
    task.failed_late = false;
    task.holds.store(1, std::memory_order_relaxed);  // the body's hold; published with the waiter
  }
  task.holds.fetch_add(1, std::memory_order_relaxed);  // the hold of the body keeps it above zero
  hold.task = &task;
  hold.notify = [](Waiter& waiter, Outcome& outcome) noexcept -> Waiter* {
    Task& held = *waiter.task;
    const detail::Completion* const source = static_cast<Hold&>(waiter).source;
    trace::races::let_go_hold(&held.event, source != nullptr ? &source->event : nullptr);
    order_hold();
    if (held.holds.fetch_sub(1, std::memory_order_acq_rel) != 1) return nullptr;
    if (complete_by_wish(held, outcome)) return nullptr;
    Tally tally{held.scope, 0};
    const Fired fired = fire_end(held, outcome.ready);
    count_end(held, fired.left, tally, outcome);
    flush(tally, outcome);
    return fired.waiters;
  };
  if (!event::add(event, hold)) {
    trace::races::after(&event);
    order_ended_hold(task);
    task.holds.fetch_sub(1, std::memory_order_relaxed);
  }
}

namespace {

// The access fails with the failure of its source, and so does the waiting scope. The task does not
// fail: it has its result, and perhaps its scope belongs to another task now.
Failure* fail_by_source(Task& task, const Hold& hold) noexcept {
  if (hold.source == nullptr || hold.source->failure == nullptr) return nullptr;
  take(*hold.source->failure);
  Failure& failure = failure_of_task(task, exception_of(*hold.source->failure));
  hold.scope->fail(failure);
  return &failure;
}

void end_hold(Task& task, const Hold& hold, Outcome& outcome) noexcept {
  Failure* const failure = fail_by_source(task, hold);
  if (hold.address != nullptr) {
    releases_of(*task.accesses)->end_hold(hold.address, hold.bytes, failure, outcome);
  }
  if (failure != nullptr) drop(*failure);
  Tally tally{hold.scope, Scope::one_deep};  // the last access: the scope's end may free the hold
  flush(tally, outcome);
}

}  // namespace

void hold_until(Task& task, EventWord& event, Hold& hold, Outcome& outcome) noexcept {
  Scope& scope = *hold.scope;
  scope.count_spawned();
  (void)scope.count_finished(Scope::one_complete);  // the owner runs, so it does not wait
  hold.task = &task;
  hold.notify = [](Waiter& waiter, Outcome& result) noexcept -> Waiter* {
    const auto& ended = static_cast<const Hold&>(waiter);
    const detail::Completion* const source = ended.source;
    trace::races::let_go_hold(&waiter.task->event, source != nullptr ? &source->event : nullptr);
    order_hold();
    end_hold(*waiter.task, ended, result);
    return nullptr;
  };
  if (event::add(event, hold)) return;
  trace::races::after(&event);
  order_ended_hold(task);
  end_hold(task, hold, outcome);
}

}  // namespace imbrex::task
