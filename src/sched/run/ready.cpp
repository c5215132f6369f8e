// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/ready.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "sched/policy/ordered_queue.hpp"
#include "sched/policy/stealing.hpp"
#include "sched/run/notes.hpp"
#include "task/event_word.hpp"
#include "trace/races.hpp"

namespace imbrex::sched {

using task::State;

// ---- where a ready task goes -----------------------------------------------------------------

namespace {

void push_to_inbox(Worker& to, Task& task) noexcept {
  Task* head = to.inbox.load(std::memory_order_relaxed);
  do {
    task.next_ready = head;
  } while (!to.inbox.compare_exchange_weak(head, &task, std::memory_order_release,
                                           std::memory_order_relaxed));
}

// A tied task, or a task on a native stack, goes back to its own thread and to no other.
void post(Worker& from, Worker& to, Task& task) noexcept {
  if (to.foreign()) {
    to.bell.notify();
    return;
  }
  push_to_inbox(to, task);
  if (to.seat.spare) [[unlikely]] {
    to.runtime->lending->ring(to.seat);
  } else if (from.wakes != nullptr) [[unlikely]] {
    constexpr int places = base::Parking::cluster_places;
    from.wakes[to.id / places] |= std::uint32_t{1} << (to.id % places);
  } else {
    to.runtime->parking.wake(to.id);
  }
}

// The only worker that may resume a suspended task, or null.
Worker* bound_to(const Task& task) noexcept {
  return static_cast<Worker*>(static_cast<const fiber::Fiber*>(task.fiber)->tied_to);
}

// The position of the worker in a group that it does not serve first, but belongs to for good;
// no_worker if there is none. A policy that takes all knows workers by their numbers.
int index_in(const Worker& worker, const std::uint16_t group) noexcept {
  if (worker.runtime->one_at_a_time) return worker.foreign() ? no_worker : worker.id;
  for (const Membership* place = worker.membership; place != nullptr; place = place->outer) {
    if (place->group->id == group && place->group->standing) return place->index;
  }
  return no_worker;
}

// Queues a task that became ready where `worker` runs, in the task's group, and wakes a member. Not
// inlined, so that the work-stealing path, which does not need it, keeps its registers.
[[gnu::noinline]] void push_to_group(Worker& worker, Task& task, const int only,
                                     const Origin origin) {
  RuntimeState& runtime = *worker.runtime;
  const std::uint16_t id = task.group;  // the task may be gone when it is queued
  if (worker.only_queue != nullptr && id == worker.group) [[likely]] {
    worker.steal_again_at = 0;  // the worker has a task of its own now
    worker.only_queue->push(task, origin == Origin::resumed, worker.id);
    base::light_fence();
    if (runtime.parking.may_be_asleep()) [[unlikely]] wake_neighbour(worker);
    return;
  }
  const int index = id == worker.group ? worker.membership->index : index_in(worker, id);
  runtime.groups.of(id).policy->push(task, {index, only}, origin);
  base::light_fence();
  if (!runtime.parking.may_be_asleep()) return;
  if (id == worker.group && only == no_worker) {
    wake_neighbour(worker);
  } else {
    runtime.groups.of(id).wake_member(runtime.parking);
  }
}

inline void enqueue(Worker& worker, Task& task, const Origin origin,
                    Worker* const tied_to) noexcept {
  RuntimeState& runtime = *worker.runtime;
  if (tied_to != nullptr && (tied_to->foreign() || !runtime.one_at_a_time)) {
    post(worker, *tied_to, task);
    return;
  }
  // release: a thread that claims the task sees the work before. From here on a second entry may
  // run it.
  if (origin != Origin::resumed) task.state.store(State::ready, std::memory_order_release);
  if (task.group != worker.group || worker.queues == nullptr || !worker.queues->push(task, origin))
      [[unlikely]] {
    if (task.group == Groups::in_place) return runtime.above.run_where_spawned(worker, task);
    if (origin == Origin::forked && runtime.lineage.marks()) notes::mark(worker, task);
    push_to_group(worker, task, tied_to != nullptr ? tied_to->id : no_worker, origin);
    return;
  }
  // parking.hpp says why no wake-up of a member is lost; a worker that has not joined yet looks for
  // work after it has joined.
  base::light_fence();
  if (runtime.parking.may_be_asleep()) [[unlikely]] wake_neighbour(worker);
}

}  // namespace

void act_on(Worker& worker, task::Outcome& outcome) noexcept {
  while (Task* const ready = outcome.ready.pop()) {
    enqueue(worker, *ready, ready->fiber != nullptr ? Origin::resumed : Origin::released);
  }
  task::ReadyList rest;
  while (Task* const dead = outcome.dead.pop()) {
    if (!reuse_if_plain(worker, *dead)) [[unlikely]] rest.push(*dead);
  }
  if (!rest.empty()) [[unlikely]] leave_to_task(worker, rest);
}

void let_go(Worker& worker, task::Waiter& first) noexcept {
  Task* const only = first.next == nullptr && first.notify == nullptr ? first.task : nullptr;
  if (only != nullptr) {
    if (!only->release()) return;
    if (only->state.load(std::memory_order_relaxed) == State::suspended) [[likely]] {
      task::change_state(*only, State::suspended, State::resumable);
      enqueue(worker, *only, Origin::resumed, bound_to(*only));
      return;
    }
  }
  task::Outcome outcome;
  if (only != nullptr) {
    task::make_ready(*only, outcome.ready);
  } else {
    task::event::let_go_all(&first, outcome);
  }
  act_on(worker, outcome);
}

void enqueue(Worker& worker, Task& task, const Origin origin) noexcept {
  enqueue(worker, task, origin, task.fiber != nullptr ? bound_to(task) : nullptr);
}

void fire(Worker& worker, detail::EventWord& event) noexcept {
  trace::races::before(&event);
  task::Waiter* waiters = nullptr;
  if (task::event::try_fire(event, waiters) && waiters != nullptr) let_go(worker, *waiters);
}

void put_behind(Worker& worker, Task& task, const bool tied, const std::uint64_t before) noexcept {
  RuntimeState& runtime = *worker.runtime;
  if (runtime.one_at_a_time) {
    const Place place{.worker = worker.id, .only = tied ? worker.id : no_worker, .before = before};
    runtime.groups.everyone().policy->push(task, place, Origin::yielded);
    return;
  }
  const Behind entry{&task, runtime.begun() + before};
  if (tied || runtime.workers.size() == 1) {
    rules::insert(worker.behind, entry);
    worker.behind_count.store(worker.behind.size(), std::memory_order_relaxed);
    return;
  }
  detail::Group& group = runtime.groups.of(task.group);
  {
    const std::lock_guard guard(runtime.behind_lock);
    rules::insert(group.behind, entry);
    group.behind_count.fetch_add(1, std::memory_order_release);
    runtime.behind_count.fetch_add(1, std::memory_order_release);
  }
  base::light_fence();
  group.wake_member(runtime.parking);
}

void wake_neighbour(Worker& worker) noexcept {
  if (worker.keeps != 0) {
    if (--worker.keeps == 0) worker.owes_wake_up = true;  // unless it takes the task itself
    return;
  }
  worker.membership->group->wake_member(worker.runtime->parking);
}

bool rests(const RuntimeState& runtime, const Worker* const self) noexcept {
  if (runtime.groups.ready() != 0 || runtime.behind_count.load(std::memory_order_acquire) != 0 ||
      runtime.asking.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  return std::ranges::all_of(runtime.workers, [self](const auto& worker) {
    return (worker == self || worker->task.glance() == nullptr) &&
           worker->inbox.load(std::memory_order_acquire) == nullptr;
  });
}

// ---- where the next one comes from -----------------------------------------------------------

bool Worker::some_gave_way() const noexcept {
  if (!behind.empty()) return true;
  if (runtime->behind_count.load(std::memory_order_relaxed) == 0) return false;
  if (must_leave(*this)) [[unlikely]] return false;
  for (const Membership* place = membership; place != nullptr; place = place->outer) {
    if (place->group->behind_count.load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

bool Worker::has_others() const noexcept {
  return some_gave_way() || inbox_taken != nullptr ||
         inbox.load(std::memory_order_relaxed) != nullptr;
}

namespace {

[[gnu::noinline]] Task* take_inbox(Worker& worker) noexcept {
  if (worker.inbox_taken == nullptr) {
    if (worker.inbox.load(std::memory_order_relaxed) == nullptr) return nullptr;
    Task* newest = worker.inbox.exchange(nullptr, std::memory_order_acquire);  // pairs with post()
    while (newest != nullptr) {  // oldest first
      Task* const next = newest->next_ready;
      newest->next_ready = worker.inbox_taken;
      worker.inbox_taken = newest;
      newest = next;
    }
  }
  Task* const task = worker.inbox_taken;
  worker.inbox_taken = task->next_ready;
  return task;
}

}  // namespace

Task* take_behind(Worker& worker, const bool always) noexcept {
  RuntimeState& runtime = *worker.runtime;
  const auto take_due = [&](std::deque<Behind>& behind) {  // begun() asks each worker
    return behind.empty() ? nullptr : rules::take_due(behind, always, runtime.begun());
  };
  if (Task* const task = take_due(worker.behind)) {
    worker.behind_count.store(worker.behind.size(), std::memory_order_relaxed);
    return task;
  }
  if (runtime.behind_count.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard guard(runtime.behind_lock);
  for (const Membership* place = worker.membership; place != nullptr; place = place->outer) {
    Task* const task = take_due(place->group->behind);
    if (task == nullptr) continue;
    place->group->behind_count.fetch_sub(1, std::memory_order_relaxed);
    runtime.behind_count.fetch_sub(1, std::memory_order_relaxed);
    return task;
  }
  return nullptr;
}

namespace {

// The worker is out of work again, after it took a task of another worker. The theft cost the owner
// about its own duration: once for the disturbance, and again for each task, whose data had to
// move. If that was more than the work gained, the owner is faster alone, and the thief pauses
// before the next theft: the longer, the more often that happened, up to `longest` ticks.
void judge_theft(Worker& worker, const std::uint64_t now, const std::uint64_t longest) noexcept {
  const std::uint64_t tasks = worker.recorder.tasks.get() - worker.stolen_before;
  if (now - worker.stolen_at < worker.theft_price * (1 + tasks)) {
    worker.theft_pause = std::min(2 * worker.theft_pause, longest);
    worker.steal_again_at = now + worker.theft_pause;
  } else {
    worker.theft_pause = worker.theft_price;
  }
  worker.stolen_at = 0;
}

using rules::Search;

// Finds a task in a group that the worker does not serve first. If the worker belongs to both
// groups for good, it serves that one first from now on: children of the task then go to the
// worker's own queue there.
[[nodiscard, gnu::noinline]] Entry find_in_outer_groups(Worker& worker,
                                                        const Search search) noexcept {
  Membership* inner = worker.membership;
  const bool turns = inner->group->standing;
  for (Membership* outer = inner->outer; outer != nullptr; inner = outer, outer = inner->outer) {
    Entry entry = outer->group->policy->pop(outer->index);
    if (!entry && search != Search::own) {
      entry = outer->group->policy->steal(outer->index, search == Search::eager);
    }
    if (!entry) continue;
    if (turns && outer->group->standing) worker.serve_first(*inner);
    return entry;
  }
  return {};
}
[[nodiscard]] Entry find_in_outer_groups(Worker& worker, const bool eager) noexcept {
  if (worker.membership->outer == nullptr) return {};
  return find_in_outer_groups(worker, eager ? Search::eager : Search::all);
}

// Takes the first entry of a queue that another worker pushed to last.
Entry take_from_others(Worker& worker, OrderedQueue& queue, const bool eager) noexcept {
  const std::uint64_t now = base::ticks();
  const std::uint64_t brief = worker.runtime->brief;
  if (const std::uint32_t changes = queue.changes(); changes != worker.changes_seen) {
    worker.changes_seen = changes;
    worker.changed_at = now;
  }
  const bool disturbs = now - worker.changed_at < brief;  // other workers use the queue, too
  if (worker.stolen_at != 0 && disturbs) judge_theft(worker, now, 32 * brief);
  worker.stolen_at = 0;
  if (!rules::may_take(queue, eager) || now < worker.steal_again_at) return {};
  flush_tally(worker);
  const Entry entry = queue.pop();
  if (entry) {
    worker.changes_seen = queue.changes();
    worker.stolen_at = now;
    worker.stolen_before = worker.recorder.tasks.get();
    worker.theft_price = brief / 2;  // the cost of a contended lock, and of a task's data
  }
  return entry;
}

// The first entry of the group's only queue; otherwise an entry of the groups that the worker
// joined before. A single entry of another worker is left to it, unless `eager`. Entries are also
// left for a while where the other worker uses the queue, too, and the tasks are too short to be
// worth the disturbance.
[[gnu::noinline]] Entry find_in_only_queue(Worker& worker, const bool eager) noexcept {
  OrderedQueue& queue = *worker.only_queue;
  Entry entry;
  // While the worker pauses it does not even read the queue, which alone would disturb.
  if (worker.steal_again_at == 0 || base::ticks() >= worker.steal_again_at) {
    worker.steal_again_at = 0;
    const bool own = rules::is_own(queue, worker.id);
    if (own) worker.stolen_at = 0;
    entry = own ? queue.pop() : take_from_others(worker, queue, eager);
  }
  return entry ? entry : find_in_outer_groups(worker, eager);
}

// The result of `steal`, unless recent thefts were not worth it.
template <class Steal>
Entry steal_if_worth_it(Worker& worker, const Steal steal) noexcept {
  const RuntimeState& runtime = *worker.runtime;
  const std::uint64_t begin = base::ticks();
  if (worker.stolen_at != 0) judge_theft(worker, begin, 128 * runtime.brief);
  if (begin < worker.steal_again_at) return {};
  const Entry entry = steal();
  const std::uint64_t end = base::ticks();
  // If the theft took longer, it waited for the owner's answer.
  worker.theft_price = std::clamp(end - begin, runtime.brief, 2 * runtime.brief);
  if (entry) {
    worker.recorder.steals.add(1);
    worker.stolen_at = end;
    worker.stolen_before = worker.recorder.tasks.get();
  } else if (end - begin > runtime.brief) {  // another thread held the lock
    worker.steal_again_at = end + 4 * runtime.brief;
  }
  return entry;
}

// Steals in the innermost place of the worker where the nearest workers have a task.
Entry steal_near_first(Worker& worker, const bool eager) noexcept {
  bool busy = false;
  for (int distance = 0; distance <= worker.runtime->groups.distances() && !busy; ++distance) {
    Membership* inner = nullptr;
    for (Membership* place = worker.membership; place != nullptr; place = place->outer) {
      const Entry entry = place->group->policy->steal_at(place->index, eager, distance, busy);
      if (entry) {
        if (inner != nullptr) worker.serve_first(*inner);
        return entry;
      }
      inner = place;
    }
  }
  return {};
}

// For a tree of places. A worker whose first group is no place has joined that group for a while,
// and steals as without a tree.
[[gnu::noinline]] Entry find_near_first(Worker& worker, const bool eager) noexcept {
  const Membership& place = *worker.membership;
  return rules::find_in_order(
      *place.group->policy, place.index, [&] { return find_in_outer_groups(worker, Search::own); },
      [&] { return steal_if_worth_it(worker, [&] { return steal_near_first(worker, eager); }); });
}

}  // namespace

Entry find_elsewhere(Worker& worker, const bool eager) noexcept {
  RuntimeState& runtime = *worker.runtime;
  if (must_leave(worker)) [[unlikely]] return {};
  if (runtime.lineage.is_behind()) [[unlikely]] notes::catch_up(worker);
  if (worker.only_queue != nullptr) return find_in_only_queue(worker, eager);
  flush_tally(worker);
  Membership& place = *worker.membership;
  Policy& policy = *place.group->policy;
  if (place.outer != nullptr && runtime.groups.distances() != 0 && place.group->standing) {
    return find_near_first(worker, eager);
  }
  const auto steal = [&] { return policy.steal(place.index, eager); };
  return rules::find_in_order(
      policy, place.index, [&] { return find_in_outer_groups(worker, eager); },
      [&] { return place.group->size == 1 ? steal() : steal_if_worth_it(worker, steal); });
}

Entry take_others(Worker& worker) noexcept {
  worker.turn_of_others.begin();
  if (Task* const task = take_inbox(worker)) {
    if (worker.inbox_taken != nullptr) worker.turn_of_others.next_pick();
    return {task, true};
  }
  if (must_leave(worker)) [[unlikely]] return {};
  if (Task* const task = take_behind(worker, false)) {
    // The next task that gave way follows after one pick by the policy, whatever this pick finds.
    if (worker.some_gave_way()) worker.turn_of_others.after_one_pick();
    return {task, true};
  }
  // The other groups that it belongs to for good have a turn, too.
  const Membership& first = *worker.membership;
  if (first.outer == nullptr || !first.group->standing) [[likely]] return {};
  return find_in_outer_groups(worker, Search::own);
}

}  // namespace imbrex::sched
