// SPDX-License-Identifier: BSD-3-Clause
// Events: firing, and the accesses and completions that end at one.
#include "imbrex/detail/waist.hpp"

#include <fmt/format.h>

#include <memory>
#include <new>
#include <utility>

#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/task_races.hpp"
#include "sched/waist/caller.hpp"
#include "task/access/accesses.hpp"
#include "task/ending/instance.hpp"
#include "trace/races.hpp"

namespace imbrex::detail {

namespace {

// Releases the waiters of a fired event.
void let_go(task::Waiter& waiters) noexcept {
  if (Worker* const worker = sched::current_worker()) [[likely]] {
    sched::let_go(*worker, waiters);
  } else {
    sched::visit(Purpose::passes, [&] { sched::let_go(*sched::current_worker(), waiters); },
                 [&] { sched::let_go_after_end(waiters); });
  }
}

[[noreturn, gnu::cold, gnu::noinline]] void throw_fired_twice() {
  throw Error(fmt::format("imbrex: an event fired twice, the second time in {}",
                          describe_current_task()));
}

}  // namespace

[[gnu::flatten]] void fire(EventWord& event) noexcept {
  trace::races::before(&event);
  task::Waiter* waiters = nullptr;
  if (task::event::try_fire(event, waiters) && waiters != nullptr) let_go(*waiters);
}

[[gnu::flatten]] void fire_once(EventWord& event) {
  trace::races::before(&event);
  task::Waiter* waiters = nullptr;
  if (!task::event::try_fire(event, waiters)) [[unlikely]] throw_fired_twice();
  if (waiters != nullptr) let_go(*waiters);
}

void fire_all(LinkedEvent* first) noexcept {
  Worker* const worker = sched::current_worker();
  std::unique_ptr<std::uint32_t[]> wakes;
  std::size_t clusters = 0;
  // A single waiter is woken at once, without a batch.
  if (worker != nullptr && first != nullptr && first->next != nullptr) {
    clusters = worker->runtime->workers.size() / base::Parking::cluster_places + 1;
    wakes.reset(new (std::nothrow) std::uint32_t[clusters]());
    worker->wakes = wakes.get();
  }
  while (first != nullptr) fire(std::exchange(first, first->next)->event);
  if (wakes == nullptr) return;
  worker->wakes = nullptr;
  for (std::size_t cluster = 0; cluster < clusters; ++cluster) {
    if (wakes[cluster] == 0) continue;
    worker->runtime->parking.wake_cluster(static_cast<int>(cluster), wakes[cluster]);
  }
}

namespace {

// A hold of the running task, which has no event yet. Throws std::bad_alloc, and has then changed
// nothing.
task::Hold& make_hold(Worker& worker, Completion* const source) {
  Task& task = *worker.task;
  Family& family = family_of(worker, task);
  auto* const hold = ::new (worker.small.take(base::slab_class(sizeof(task::Hold)))) task::Hold;
  hold->following = family.holds;
  hold->source = source;
  if (source != nullptr) retain(*source);
  family.holds = hold;
  return *hold;
}

// Undoes make_hold(), if this is its last hold.
void forget_hold(Worker& worker, task::Hold& hold) noexcept {
  worker.task->family->holds = hold.following;
  if (hold.source != nullptr) release(*hold.source);
  worker.small.give(&hold, base::slab_class(sizeof(task::Hold)));
}

void hold_running_task(EventWord& event, Completion* const source) {
  if (is_outside()) {
    return visit_to_wait("release_after", [&] { hold_running_task(event, source); });
  }
  Worker& worker = *sched::current_worker();
  check_may_wait(worker, "release_after");
  if (worker.task->is_root()) {
    throw Error("imbrex: release_after outside a task: the program's main code has no dependents");
  }
  task::Hold& hold = make_hold(worker, source);
  sched::notes::hold(worker, source);
  task::hold_completion(*worker.task, event, hold);
}

void hold_running_access(EventWord& event, Completion* const source, const void* const address,
                         const std::size_t bytes) {
  if (is_outside()) {
    return visit_to_wait("release_after", [&] {
      hold_running_access(event, source, address, bytes);
    });
  }
  Worker& worker = *sched::current_worker();
  check_may_wait(worker, "release_after");
  // The hold comes first, since it may throw: a held access must have something that ends it.
  task::Hold& hold = make_hold(worker, source);
  if (task::is_node(*worker.task)) task::put_edges_on_event(*worker.task);
  task::Outcome outcome;
  if (!task::hold_access(*worker.task, address, bytes, outcome)) {
    sched::act_on(worker, outcome);
    forget_hold(worker, hold);
    task::throw_not_declared("release_after", *worker.task, address, bytes);
  }
  hold.scope = &worker.task->family->children;
  hold.address = address;
  hold.bytes = bytes;
  task::hold_until(*worker.task, event, hold, outcome);
  sched::act_on(worker, outcome);
}

}  // namespace

void release_after(EventWord& event) { hold_running_task(event, nullptr); }
void release_after(Completion& completion) { hold_running_task(completion.event, &completion); }

void release_access_after(EventWord& event, const void* const address, const std::size_t bytes) {
  hold_running_access(event, nullptr, address, bytes);
}
void release_access_after(Completion& completion, const void* const address,
                          const std::size_t bytes) {
  hold_running_access(completion.event, &completion, address, bytes);
}

bool in_finish() noexcept {
  if (is_outside()) [[unlikely]] {
    if (sched::known_worker() == nullptr) return false;
    return sched::visit(Purpose::passes, [] { return in_finish(); }, [] { return false; });
  }
  if (!in_task()) return false;
  const Task& task = *sched::current_worker()->task;
  if (task.family != nullptr) return task.family->current->finish != nullptr;
  return task.scope != nullptr && task.scope->finish != nullptr;
}

void hold_finish(Completion& completion) {
  if (is_outside()) return visit_to_wait("finish_owns", [&] { hold_finish(completion); });
  Worker& worker = *sched::current_worker();
  check_may_wait(worker, "finish_owns");
  Scope& scope = *family_of(worker, *worker.task).current;
  if (scope.finish == nullptr) {
    throw Error(fmt::format("imbrex: finish_owns() in {} without an open finish() around it: no "
                            "finish() would wait for the future",
                            describe_current_task()));
  }
  task::Hold& hold = make_hold(worker, &completion);
  hold.scope = &scope;
  scope.owns = true;
  task::Outcome outcome;
  task::hold_until(*worker.task, completion.event, hold, outcome);
  sched::act_on(worker, outcome);
}

Completion* held_task() noexcept {
  Task& task = *sched::current_worker()->task;
  if (!task.held()) return nullptr;
  task::add_reference(task);
  return &task;
}

std::vector<OpenAccess> open_accesses() {
  if (is_outside() || !in_task()) return {};
  Task& task = *sched::current_worker()->task;
  std::vector<OpenAccess> open;
  if (task.accesses != nullptr) task::list_open(task, open);
  return open;
}

void release_access(const void* const address, const std::size_t bytes) {
  if (is_outside()) return visit_to_wait("release", [&] { release_access(address, bytes); });
  Worker& worker = *sched::current_worker();
  check_may_wait(worker, "release");
  task::Outcome outcome;
  sched::task_races::release(*worker.task, address, bytes);
  if (trace::happens_before::is_kept()) [[unlikely]] sched::notes::precedes(worker, address, bytes);
  if (task::is_node(*worker.task)) task::put_edges_on_event(*worker.task);
  if (!task::release_access(*worker.task, address, bytes, outcome)) {
    task::throw_not_declared("release", *worker.task, address, bytes);
  }
  sched::notes::release(worker, address);
  sched::act_on(worker, outcome);
}

}  // namespace imbrex::detail
