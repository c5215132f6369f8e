// SPDX-License-Identifier: BSD-3-Clause
// Threads of the program: as visitors (visit.hpp), or as workers; and their end.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/threads/threads.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/error.hpp"
#include "sched/life/life.hpp"
#include "sched/life/process.hpp"
#include "sched/life/visit.hpp"
#include "sched/run/dead.hpp"
#include "sched/run/idle.hpp"
#include "sched/run/loop/loop.hpp"
#include "sched/run/phasers/leave.hpp"
#include "sched/run/ready.hpp"
#include "task/access/depend.hpp"
#include "task/joint.hpp"
#include "trace/races.hpp"

namespace imbrex::sched {

namespace {

Task& make_root(Worker& worker, const char* const name, const std::uint16_t group) {
  constexpr std::size_t slot_class = base::slab_class(sizeof(Task));
  auto& root = *static_cast<Task*>(worker.tasks.take(slot_class));
  task::initialise(root, {.id = worker.runtime->next_id.fetch_add(1, std::memory_order_relaxed),
                          .name = name,
                          .where = {},
                          .ops = nullptr,
                          .parent = nullptr,
                          .scope = &worker.runtime->unowned,
                          .priority = 0,
                          .group = group,
                          .slot_class = slot_class,
                          .tied = true});
  root.root.store(true, std::memory_order_relaxed);
  root.pending.store(0, std::memory_order_relaxed);
  root.reach = task::Reach::entry;
  root.state.store(task::State::running, std::memory_order_release);
  return root;
}

}  // namespace

void adopt_stack(fiber::Fiber& fiber) noexcept {
  fiber::adopt_native(fiber);
  const fiber::Stack& forked_on = life().forked.stack;
  if (forked_on.bottom != nullptr && is_main_thread()) fiber.stack = forked_on;
}

// The code of the child's main thread goes on in the scopes that it had in the parent.
static void adopt_scopes(Task& root) noexcept {
  root.family = std::exchange(life().forked.family, nullptr);
  if (root.family == nullptr) return;
  for (task::Scope* scope = root.family->current; scope != nullptr; scope = scope->outer) {
    scope->owner = &root;
  }
}

void adopt_thread(Worker& worker, const char* const name) {
  trace::races::begin();
  adopt_stack(worker.native);
  worker.exception_globals = fiber::thread_exception_globals();
  worker.fiber = &worker.native;
  worker.native.tied_to = &worker;
  worker.root = &make_root(worker, name, 0);
  if (life().forked.is_child && is_main_thread()) adopt_scopes(*worker.root);
  worker.task = worker.root;
  worker.recorder.enter(trace::Activity::task);
  worker.thread_id.store(base::kernel_thread_id(), std::memory_order_relaxed);
  (void)lost_processor(worker);  // it counts from here
  set_current_worker(&worker);
}

namespace {

void end_root(Worker& worker, Worker& actor) noexcept;

// ---- visits ----------------------------------------------------------------------------------

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

// Enters without a lock if the thread has been here before; false if it may not go on.
bool enter_again(Worker& worker) noexcept {
  if (worker.creating != 0) return true;  // the thread is inside
  worker.inside.store(true, std::memory_order_relaxed);
  base::light_fence();  // pairs with close_door()
  // acquire: a thread that sees an open door sees the state of the worker behind it.
  if (!life().closed.load(std::memory_order_acquire) &&
      !worker.over.load(std::memory_order_relaxed)) {
    return true;
  }
  worker.inside.store(false, std::memory_order_release);
  return false;
}

// The thread ends, or becomes a worker.
void end_visits(Worker* const worker) {
  if (visitor() != worker) return;
  Life& now = life();
  for (bool inside = enter_again(*worker); !inside;) {
    {
      const std::lock_guard guard(now.lock);
      if (worker->over.load(std::memory_order_relaxed)) {
        set_visitor(nullptr);
        delete worker;
        return;
      }
      inside = !now.closed.load(std::memory_order_acquire);  // as in enter_again()
      worker->inside.store(inside, std::memory_order_relaxed);
    }
    if (!inside) nap();
  }
  set_current_worker(worker);
  end_root(*worker, *worker);
  set_current_worker(nullptr);
  set_visitor(nullptr);
  std::unique_ptr<Worker> owned(worker);
  RuntimeState& runtime = *worker->runtime;
  const std::lock_guard guard(runtime.foreign_lock);
  std::erase(runtime.foreign, worker);
  if (worker->recorder.has_records()) runtime.ended.push_back(std::move(owned));
}

void end_thread(Worker* const worker) {
  if (visitor() == worker) end_scopes_of_thread();
  end_visits(worker);
}

// Calls leave(worker) when the thread ends, except for main's thread, which ends with the program.
void call_at_exit(Worker* const worker, void (*const leave)(Worker*)) noexcept {
  if (is_main_thread()) {
    at_main_exit(&main_ends);
  } else {
    at_thread_exit(worker, leave);
  }
}

// A worker without a loop.
Worker* make_foreign(RuntimeState& runtime, const char* const name) {
  auto* const worker = new Worker(runtime, no_worker);
  worker->home.group = &runtime.groups.nobody();
  worker->serve(worker->home);
  worker->recorder.enable(runtime.options.SUMMARY, !runtime.options.TRACE.empty(), UINT32_MAX);
  if (runtime.lineage.flow().learns) worker->recorder.watch();  // tasks in callbacks run here
  worker->inside.store(true, std::memory_order_relaxed);
  adopt_thread(*worker, name);
  return worker;
}

// The callbacks of the calling thread belong to `worker`, its first one, from here on.
void take_over_callbacks(Worker& worker) noexcept {
  const CallbacksOutside outside = std::exchange(callbacks_outside(), {});
  worker.callbacks = outside.count;
  worker.callback_call = outside.call;
}

Worker& attach(RuntimeState& runtime) IMBREX_REQUIRES(life().lock) {
  Worker* const worker = make_foreign(runtime, "foreign thread");
  worker->own = base::is_own_thread(worker->thread_id.load(std::memory_order_relaxed));
  take_over_callbacks(*worker);
  set_visitor(worker);
  call_at_exit(worker, &end_thread);
  const std::lock_guard guard(runtime.foreign_lock);
  runtime.foreign.push_back(worker);
  return *worker;
}

// The worker of the calling thread's visit, or the worker that the thread has become, or null if no
// runtime runs. REQUIRES: the door is open.
Worker* enter_locked(const Purpose purpose) IMBREX_REQUIRES(life().lock) {
  if (Worker* const worker = visitor()) {
    if (!worker->over.load(std::memory_order_relaxed)) {
      worker->inside.store(true, std::memory_order_relaxed);
      return worker;
    }
    set_visitor(nullptr);
    delete worker;
  }
  if (purpose == Purpose::spawns) {
    start_if_none();
    if (Worker* const worker = current_worker()) return worker;
  }
  RuntimeState* const now = runtime();
  return now == nullptr ? nullptr : &attach(*now);
}

Worker* enter(const Purpose purpose) {
  Worker* const known = visitor();
  if (known != nullptr && enter_again(*known)) return known;
  for (;;) {
    {
      const std::lock_guard guard(life().lock);
      // acquire: as in enter_again(); the door is opened without the lock.
      if (!life().closed.load(std::memory_order_acquire)) return enter_locked(purpose);
    }
    nap();
  }
}

}  // namespace

Visit::Visit(const Purpose purpose) {
  Worker* const worker = enter(purpose);
  if (worker == nullptr) return;
  admitted_ = true;
  set_current_worker(worker);
  if (purpose != Purpose::passes) worker->known = true;
}

Visit::~Visit() {
  Worker* const worker = visitor();
  // A thread whose current worker is another one has become worker 0, or has joined.
  if (!admitted_ || worker == nullptr || current_worker() != worker) return;
  set_current_worker(nullptr);
  if (worker->over.load(std::memory_order_acquire)) {  // the thread has stayed behind
    worker->tasks.flush();
    worker->small.flush();
    forget_keeper(*worker->runtime);
  }
  if (worker->creating == 0) worker->inside.store(false, std::memory_order_release);
}

void begin_creation() noexcept {
  if (Worker* const worker = current_worker(); worker->foreign()) ++worker->creating;
}

void end_creation() noexcept {
  if (Worker* const worker = current_worker(); worker->foreign()) --worker->creating;
}

Worker* known_worker() noexcept {
  if (Worker* const worker = current_worker()) return worker;
  Worker* const worker = visitor();
  const bool known =
      worker != nullptr && worker->known && !worker->over.load(std::memory_order_relaxed);
  return known ? worker : nullptr;
}

bool await_after_end(const detail::EventWord& event) noexcept {
  if (is_main_thread() || life().process.load(std::memory_order_relaxed) != getpid()) return false;
  while (!event.has_fired()) nap();
  return true;
}

// ---- the end of a thread's code --------------------------------------------------------------

namespace {

// The root lives on until the tasks that it spawned are complete.
void end_root(Task& root, Worker& actor, const bool acts) noexcept {
  task::Outcome outcome;
  root.state.store(task::State::ended, std::memory_order_release);
  if (root.family == nullptr) {
    task::lose(root, outcome);
  } else {
    if (root.family->table != nullptr) root.family->table->clear(outcome);
    leave_phasers(actor, root, nullptr, outcome);
    if (root.family->children.begin_wait(task::Await::life)) task::lose(root, outcome);
  }
  if (acts) {
    act_on(actor, outcome);
  } else {
    destroy_all(outcome);  // no task will run any more
  }
}

void end_root(Worker& worker, Worker& actor) noexcept {
  worker.task = nullptr;
  end_root(*worker.root, actor, &actor == &worker);
  worker.tasks.flush();
  worker.small.flush();
}

// A thread that has joined ends. From its fibers' view the next joining thread is the same worker.
void leave_workers(Worker* const worker) {
  RuntimeState* const runtime = worker->runtime;
  if (life().runtime.load(std::memory_order_acquire) != runtime) {
    set_current_worker(nullptr);
    return;
  }
  end_scopes_of_thread();
  end_root(*worker, *worker);
  set_current_worker(nullptr);
  worker->thread_id.store(0, std::memory_order_relaxed);  // another thread may get it
  worker->parked.store(true, std::memory_order_release);
  const std::lock_guard guard(runtime->foreign_lock);
  worker->next_left = runtime->left;
  runtime->left = worker;
}

// A worker for the calling thread, which is none.
Worker& join_runtime(RuntimeState& runtime) {
  const std::lock_guard guard(runtime.foreign_lock);
  if (Worker* const left = runtime.left) {
    runtime.left = left->next_left;
    left->parked.store(false, std::memory_order_relaxed);
    return *left;
  }
  if (runtime.workers.full()) {
    throw Error(fmt::format("imbrex: {} threads use the runtime already, which is the limit: start "
                            "fewer threads",
                            runtime.workers.most()));
  }
  const int id = static_cast<int>(runtime.workers.size());
  runtime.parking.open(id);
  auto worker = std::make_unique<Worker>(runtime, id);
  worker->joined = true;
  worker->home = {&runtime.groups.nobody(), 0, nullptr};
  worker->serve(worker->home);
  // Each thread of a team lends one of the team's processors, whichever the system runs it on.
  if (runtime.lending != nullptr && id < static_cast<int>(runtime.processors.size())) {
    worker->seat.processor = runtime.processors[static_cast<std::size_t>(id)];
  }
  worker->recorder.enable(runtime.options.SUMMARY || life().want_times,
                          !runtime.options.TRACE.empty(), static_cast<std::uint32_t>(id));
  if (runtime.lineage.flow().learns) worker->recorder.watch();
  if (id >= static_cast<int>(runtime.processors.size())) {
    runtime.oversubscribed.store(true, std::memory_order_relaxed);
  }
  if (id >= 16 * static_cast<int>(runtime.processors.size())) runtime.parking.expect_crowd();
  return runtime.workers.add(std::move(worker));
}

// REQUIRES: `worker` is the current one.
void end_stand_in(Worker& worker) noexcept {
  end_scopes_of_thread();
  worker.task = std::exchange(worker.interrupted, nullptr);
  end_root(*std::exchange(worker.stand_in, nullptr), worker, true);
}

}  // namespace

void begin_stand_in(Worker& worker) {
  worker.stand_in = &make_root(worker, "a callback", Groups::in_place);
  worker.stand_in_since = worker.callbacks;
  worker.interrupted = worker.task;
  worker.task = worker.stand_in;
}

void leave_stand_in(Worker& worker) noexcept {
  if (worker.callbacks != worker.stand_in_since) return;  // the stand-in belongs to a callback
                                                          // around
  if (!is_outside()) return end_stand_in(worker);
  visit(Purpose::passes, [&worker] { end_stand_in(worker); }, [] {});
}

void end_visitor(Worker& worker, Worker& actor) noexcept {
  // A thread that finds the door closed is inside for a moment, too, but its root is not suspended.
  if (worker.inside.load(std::memory_order_acquire) &&
      worker.root->state.load(std::memory_order_acquire) == task::State::suspended) {
    worker.runtime->keepers.fetch_add(1, std::memory_order_relaxed);
  } else {
    end_root(worker, actor);
  }
  worker.over.store(true, std::memory_order_release);
}

}  // namespace imbrex::sched

namespace imbrex::detail {

using sched::Worker;

bool join_runtime() {
  const Worker* const present = sched::current_worker();
  if (present != nullptr && !present->foreign()) return true;
  if (Worker* const visitor = sched::visitor()) sched::end_visits(visitor);
  for (;; sched::nap()) {
    const std::lock_guard guard(sched::life().lock);
    if (sched::life().closed.load(std::memory_order_relaxed)) continue;
    if (sched::runtime() == nullptr) {
      if (sched::has_ended()) return false;
      sched::start_if_none();
    }
    if (sched::current_worker() != nullptr) return true;  // the thread is worker 0
    Worker& worker = sched::join_runtime(*sched::runtime());
    sched::adopt_thread(worker, "thread");
    sched::take_over_callbacks(worker);
    sched::call_at_exit(&worker, &sched::leave_workers);
    break;
  }
  sched::alternate_stack();
  return true;
}

// While the thread is inside, the end waits for it as for a visitor. The thread does not check the
// door, since the code that brings the runtime to rest polls behind it.
void enter_as(Guest& guest) {
  auto* worker = static_cast<Worker*>(guest.worker);
  sched::RuntimeState* const now = sched::runtime();
  if (worker != nullptr && worker->over.load(std::memory_order_acquire)) {
    delete worker;
    guest.worker = worker = nullptr;
  }
  guest.inside = now != nullptr;
  if (!guest.inside) return;
  guest.before = sched::current_worker();
  if (worker == nullptr) {
    guest.worker = worker = sched::make_foreign(*now, "handlers of messages");
    worker->guest = true;
    worker->callbacks = 1;
    const std::lock_guard guard(now->foreign_lock);
    now->foreign.push_back(worker);
  }
  worker->inside.store(true, std::memory_order_relaxed);
  base::light_fence();  // pairs with close_door()
  (void)sched::exchange_current_worker(worker);
}

void leave_as(Guest& guest) noexcept {
  if (!guest.inside) return;
  auto* const worker = static_cast<Worker*>(guest.worker);
  (void)sched::exchange_current_worker(static_cast<Worker*>(guest.before));
  worker->inside.store(false, std::memory_order_release);
}

}  // namespace imbrex::detail
