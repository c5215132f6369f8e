// SPDX-License-Identifier: BSD-3-Clause
// The runtime stops: with its object, and at the end of the program.
//
// It stops at rest: no task is left, no thread of the program is in a call (except threads that
// visit.hpp lets stay behind), and none has a finish() open. The door is closed to check that, and
// to keep it so. While the door is closed the remaining tasks run on. If they come to a halt, they
// may need a thread that waits outside, so the door is opened for a while. A thread that spawns for
// ever therefore does not keep the program from ending, and a thread that tasks wait for is let in.
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <thread>

#include "base/check.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "sched/life/life.hpp"
#include "sched/life/stall.hpp"
#include "sched/life/visit.hpp"
#include "sched/run/dead.hpp"
#include "sched/run/loop/destructors.hpp"
#include "sched/run/loop/loop.hpp"
#include "sched/run/loop/waiting.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/phasers/leave.hpp"
#include "sched/run/polling.hpp"
#include "sched/run/ready.hpp"
#include "sched/trigger/progress_functions.hpp"
#include "task/failure.hpp"

namespace imbrex::sched {

namespace {

using Clock = std::chrono::steady_clock;

// ---- coming to rest --------------------------------------------------------------------------

void close_door() {
  const std::lock_guard guard(life().lock);  // held by a thread that enters for the first time
  life().closed.store(true, std::memory_order_relaxed);
  base::heavy_fence();  // pairs with enter_again()
}

void open_door() noexcept { life().closed.store(false, std::memory_order_release); }

const task::Scope* open_finish(const Worker& worker) noexcept {
  const task::Family* const family = worker.root->family;
  if (family == nullptr) return nullptr;
  const task::Scope* const current = family->current;
  return current != &family->children ? current : nullptr;
}

// Whether the end waits for the thread. REQUIRES: the door is closed.
bool is_awaited(const Worker& worker) noexcept {
  if (&worker == visitor()) return false;
  if (!worker.inside.load(std::memory_order_acquire)) return open_finish(worker) != nullptr;
  return worker.root->state.load(std::memory_order_acquire) != task::State::suspended ||
         worker.creating != 0 || open_finish(worker) != nullptr;
}

// Whether the thread is inside, and does not only wait.
bool touches_the_runtime(const Worker& worker) noexcept {
  return &worker != visitor() && worker.inside.load(std::memory_order_acquire) &&
         !worker.parked.load(std::memory_order_acquire);
}

// REQUIRES: as is_awaited(), and no task runs. Returns when the thread is outside, or waits for an
// event that only another such thread can fire.
void await_leave(const Worker& worker) noexcept {
  while (is_awaited(worker) || touches_the_runtime(worker)) std::this_thread::yield();
}

// Returns one of the threads that the end waits for, or null.
const Worker* find_awaited(RuntimeState& runtime) noexcept {
  const std::lock_guard guard(runtime.foreign_lock);
  const auto found = std::ranges::find_if(
      runtime.foreign, [](const Worker* const worker) { return is_awaited(*worker); });
  return found == runtime.foreign.end() ? nullptr : *found;
}

std::vector<Worker*> visitors_of(RuntimeState& runtime) {
  const std::lock_guard guard(runtime.foreign_lock);
  return runtime.foreign;
}

// Whether a task lives that is not the code of a thread. The stand-in of a callback counts as a
// task, so is_root() cannot be used: the roots of threads are told by their address.
bool has_tasks(RuntimeState& runtime) {
  std::vector<const void*> roots;
  for (const auto& worker : runtime.workers) roots.push_back(worker->root);
  for (const Worker* const worker : visitors_of(runtime)) roots.push_back(worker->root);
  std::ranges::sort(roots);
  bool found = false;
  runtime.task_slots.for_each([&](std::byte* const slot) {
    const auto state = reinterpret_cast<Task*>(slot)->state.load(std::memory_order_acquire);
    found = found || (state != task::State::free && state != task::State::complete &&
                      !std::ranges::binary_search(roots, static_cast<const void*>(slot)));
  });
  return found;
}

// The way in which a thread waits for the end.
class Patience {
 public:
  explicit Patience(RuntimeState& runtime) noexcept : runtime_(runtime) { note_progress(); }

  // Lets other threads work, and works with them if this thread is a worker.
  void wait() {
    if (Worker* const worker = current_worker()) {
      give_way(*worker, 0);
      (void)poll(*worker, true);
      if (worker->id == 0) look_for_stall();
    }
    // The sleep is proportional to the cost of the scan of all tasks.
    const auto spent = Clock::now() - looked_at_;
    std::this_thread::sleep_for(std::clamp<Clock::duration>(
        2 * spent, std::chrono::microseconds(20), std::chrono::milliseconds(10)));
    looked_at_ = Clock::now();
    if (runtime_.begun() != begun_) note_progress();
  }
  // No task has begun or resumed for this time.
  [[nodiscard]] bool halted_for(const Clock::duration time) const {
    return Clock::now() - progress_at_ > time;
  }
  void note_progress() noexcept {
    begun_ = runtime_.begun();
    progress_at_ = Clock::now();
  }
  // Reports the wait once, when it has taken long.
  void report(const Worker* const awaited) {
    const std::int64_t limit = runtime_.options.STALL_S;
    if (awaited == nullptr || reported_ || limit == 0 ||
        !halted_for(std::chrono::seconds(limit))) {
      return;
    }
    reported_ = true;
    const task::Scope* const scope = open_finish(*awaited);
    base::report(
        scope == nullptr
            ? fmt::format("the end of the program has waited {} s for a thread that is inside a "
                          "call of imbrex: join that thread before the program ends",
                          limit)
            : fmt::format("the end of the program has waited {} s for a thread that has not "
                          "closed its finish(){}",
                          limit, detail::in_parentheses(scope->where)));
  }

 private:
  void look_for_stall() noexcept {
    if (Clock::now() - stall_looked_at_ < std::chrono::milliseconds(200)) return;
    stall_looked_at_ = Clock::now();
    watch_for_stall(runtime_);
  }

  RuntimeState& runtime_;
  std::uint64_t begun_ = 0;
  Clock::time_point progress_at_, looked_at_ = Clock::now(), stall_looked_at_ = Clock::now();
  bool reported_ = false;
};

// Waits behind the closed door until the runtime rests. False if the remaining tasks have come to a
// halt.
bool rests_soon(RuntimeState& runtime, Patience& patience) {
  constexpr std::chrono::milliseconds halt{2};
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const Worker* const awaited = find_awaited(runtime);
    if (awaited == nullptr && !has_tasks(runtime)) return true;
    patience.report(awaited);
    if (patience.halted_for(halt) && Clock::now() - begin > halt) return false;
    patience.wait();
  }
}

// Returns with the door closed, and the runtime at rest.
void await_rest(RuntimeState& runtime) {
  Patience patience(runtime);
  life().ending_thread.store(base::kernel_thread_id(), std::memory_order_relaxed);
  for (;;) {
    close_door();
    if (rests_soon(runtime, patience)) break;
    open_door();
    const Clock::time_point begin = Clock::now();
    while (Clock::now() - begin < std::chrono::milliseconds(2)) patience.wait();
  }
  life().ending_thread.store(0, std::memory_order_relaxed);
}

// Waits until the children of the running task and their descendants are complete. Suspends.
void drain_own() noexcept {
  const Worker* const worker = current_worker();
  if (worker == nullptr || worker->task->family == nullptr) return;
  leave_phasers(*worker->task);
  static constexpr detail::WaitReason reason{.kind = detail::WaitKind::end};
  await_descendants(*worker->task->family, reason);
}

// Gives up names that no finish() has closed.
void close_outermost_region() noexcept {
  const auto close = [] { close_region(nullptr); };
  if (is_outside()) return visit(Purpose::passes, close, [] {});
  close();
  // The remaining entries belong to raised tasks that have run by another entry.
  give_way(*current_worker(), 0);
  await_destructors();
}

// drain(), after the last words of a program's end.
void come_to_rest(RuntimeState& runtime) {
  drain_own();
  await_rest(runtime);
  open_door();
  close_outermost_region();
  await_rest(runtime);
}

// ---- the end ---------------------------------------------------------------------------------

// Futures refer to the results of these tasks, and need nothing else of the runtime.
void keep_result(RuntimeState& runtime, Worker& sweeper, Task& task) {
  reduce_to_result(sweeper, task);
  task.slot_class = 0;
  task.fiber = &runtime;  // recycle() reads it
  runtime.keepers.fetch_add(1, std::memory_order_relaxed);
}

void keep_results(RuntimeState& runtime, Worker& sweeper) {
  std::vector<Task*> tasks;
  runtime.task_slots.for_each([&tasks](std::byte* const slot) {
    auto& task = *reinterpret_cast<Task*>(slot);
    if (task.state.load(std::memory_order_acquire) == task::State::complete) tasks.push_back(&task);
  });
  for (Task* const task : tasks) {  // one task may have referred to another
    if (task->state.load(std::memory_order_acquire) == task::State::complete) {
      keep_result(runtime, sweeper, *task);
    }
  }
}

// REQUIRES: the door is closed, the runtime at rest. The calling thread is worker 0, or worker 0
// belongs to the runtime. Returns the result of stop_threads().
[[nodiscard]] std::vector<std::thread> stop(RuntimeState& runtime)
    IMBREX_REQUIRES(life().lock) {
  Worker& sweeper = *runtime.workers[0];
  sweeper.recorder.enter(trace::Activity::overhead);
  if (sweeper.recorder.tracing() && sweeper.root != nullptr) {
    sweeper.recorder.record(trace::Kind::task_end, sweeper.root->id, 0, 0, 0);
  }
  std::vector<std::thread> threads = stop_threads(runtime);
  // The last tasks may have woken threads that seemed to stay behind. The other threads stop
  // polling.
  const std::vector<Worker*> visitors = visitors_of(runtime);  // none comes or goes behind the door
  for (const Worker* const worker : visitors) await_leave(*worker);
  finish_records(runtime);
  set_current_worker(&sweeper);  // the destructors of results may release other objects
  sweeper.task = nullptr;
  for (Worker* const worker : visitors) {
    await_leave(*worker);  // the destructors may have woken a thread, too
    end_visitor(*worker, sweeper);
  }
  {
    const std::lock_guard guard(runtime.foreign_lock);  // a report may just read it
    runtime.foreign.clear();
  }
  detail::report_all_failures();  // a later exit(0) becomes a failure
  if (sweeper.root != nullptr && task::drop(*sweeper.root)) destroy(*sweeper.root);
  keep_results(runtime, sweeper);
  // Joined threads of the program wait for ever in a loop.
  for (const auto& worker : runtime.workers) {
    if (worker->joined) runtime.keepers.fetch_add(1, std::memory_order_relaxed);
  }
  set_current_worker(nullptr);
  if (runtime.lending != nullptr) runtime.lending->leave();
  {
    const std::lock_guard guard(life().end_lock);
    life().runtime.store(nullptr, std::memory_order_release);
  }
  open_door();
  forget_keeper(runtime);
  return threads;
}

// The program ends while tasks are left. They keep their stacks, so no join could wait for their
// threads; the running ones get a moment to leave.
void abandon(RuntimeState& runtime, const int status) {
  if (runtime.stopping.exchange(true, std::memory_order_acq_rel)) return;
  for (const auto& other : runtime.workers) {
    if (other->thread.joinable()) other->thread.detach();
  }
  save_trace(fmt::format("exit({})", status));
  if (runtime.lending != nullptr) runtime.lending->abandon();
  runtime.parking.wake_all();
  set_current_worker(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

// Whether the caller is main's own code, neither in a task nor in a call.
bool stands_in_main() noexcept {
  if (!is_main_thread()) return false;
  const Worker* const worker = current_worker();
  return worker == nullptr ||
         (!worker->foreign() && worker->task == worker->root && worker->callbacks == 0);
}

// The runtime that must come to rest because the program ends with success, or null.
RuntimeState* runtime_to_end(const int status) noexcept {
  Life& now = life();
  if (now.process.load(std::memory_order_relaxed) != getpid()) return nullptr;
  RuntimeState* const runtime = now.runtime.load(std::memory_order_acquire);
  const bool runs = runtime != nullptr && !runtime->stopping.load(std::memory_order_relaxed);
  if (!runs || status != EXIT_SUCCESS || !stands_in_main()) return nullptr;
  if (now.before_end != nullptr) now.before_end(status);
  return now.leaves_tasks ? nullptr : runtime;
}

// exit() first runs the function that main_ends() has registered, before it destroys any static
// object that a task may use.
void finish_tasks_first(const int status, void*) {
  if (RuntimeState* const runtime = runtime_to_end(status)) {
    end_scopes_of_thread();
    come_to_rest(*runtime);
    open_door();
  }
}

// Ends the running runtime, if any. True if it has come to rest before, and its threads have ended.
bool end_once(const int status) {
  RuntimeState* const ending = runtime_to_end(status);
  if (ending != nullptr) {
    end_scopes_of_thread();
    come_to_rest(*ending);
  }
  std::vector<std::thread> threads;
  {
    const std::lock_guard guard(life().lock);
    life().ended = std::max(life().ended, Ended::but_for_threads);
    RuntimeState* const left = runtime();
    if (ending != nullptr) {
      threads = stop(*ending);
    } else if (left != nullptr) {
      detail::report_all_failures();
      abandon(*left, status);
    }
  }
  for (std::thread& thread : threads) thread.join();
  return ending != nullptr;
}

// Also runs at exit(), among the other handlers and the destructors. From main, with success: runs
// the tasks that earlier handlers have spawned to their end. Otherwise nothing more starts.
void end_runtime(const int status) {
  Life& now = life();
  if (now.process.load(std::memory_order_relaxed) != getpid()) return;  // a child of fork
  Worker* const own = visitor();
  // this thread will not go on
  if (own != nullptr) own->inside.store(false, std::memory_order_release);
  // Each further round ends a runtime that destructors of thread-locals have started. There are as
  // many rounds as the system makes for destructors of keys: such a destructor may make the next
  // round necessary.
  for (int round = 1; end_once(status) && runtime() != nullptr; ++round) {
    if (round < PTHREAD_DESTRUCTOR_ITERATIONS) continue;
    const std::lock_guard guard(life().lock);
    life().ended = Ended::for_all;
  }
}

void at_exit(const int status, void*) {
  end_runtime(status);
  if (life().process.load(std::memory_order_relaxed) == getpid()) {
    flight::close(status == EXIT_SUCCESS && !life().failed.load(std::memory_order_relaxed));
  }
  // Untaken errors turn success into failure. A call of exit() in here goes on with the remaining
  // functions and destructors, and ends with the new status (glibc's exit(3)).
  const Life& now = life();
  if (status == EXIT_SUCCESS && now.failed.load(std::memory_order_relaxed) &&
      now.process.load(std::memory_order_relaxed) == getpid()) {
    std::exit(EXIT_FAILURE);
  }
}

}  // namespace

void main_ends() { on_exit(&finish_tasks_first, nullptr); }

namespace {

// Whether `task` has children that are not complete. REQUIRES: it runs, on this thread.
bool has_children(const Task& task) noexcept {
  if (task.family == nullptr) return false;
  for (const task::Scope* scope = task.family->current; scope != nullptr; scope = scope->outer) {
    if (scope->outstanding() != 0) return true;
  }
  return false;
}

}  // namespace

void notice_pthread_exit() noexcept {
  static pthread_key_t key;
  static const bool made = pthread_key_create(&key, [](void*) {
    const Worker* const worker = current_worker();
    if (worker == nullptr || !has_children(*worker->task)) return;
    base::report("main has ended by pthread_exit(). Its thread was a worker, and no other thread "
                 "runs the tasks of that worker. The process lives until exit() or SIGKILL ends "
                 "it. Return from main, or let main first wait for the other threads");
  }) == 0;
  if (made) pthread_setspecific(key, &key);  // exit() does not run it
}

void hook_once() {
  Life& now = life();
  if (now.hooked) return;
  now.hooked = true;
  on_exit(&at_exit, nullptr);
  base::set_describe(&detail::describe_current_task);
  static std::terminate_handler before;
  before = std::set_terminate([] {
    task::tell_who_has_thrown();
    before();
  });
}

std::vector<std::thread> stop_threads(RuntimeState& runtime) {
  life().blocked_watch.end();
  runtime.stopping.store(true, std::memory_order_release);
  runtime.parking.wake_all();
  std::vector<std::thread> threads;
  for (const auto& worker : runtime.workers) {
    if (!worker->thread.joinable()) continue;
    while (!worker->left.load(std::memory_order_acquire)) {  // pairs with thread_main()
      runtime.parking.wake(worker->id);
      if (worker->seat.spare) runtime.lending->ring(worker->seat);
      std::this_thread::yield();
    }
    threads.push_back(std::move(worker->thread));
  }
  return threads;
}

}  // namespace imbrex::sched

namespace imbrex::detail {

bool report_failures() noexcept {
  sched::Life& now = sched::life();
  sched::RuntimeState* const runtime = sched::runtime();
  if (runtime != nullptr && sched::report_failures(*runtime)) {
    now.failed.store(true, std::memory_order_relaxed);
  }
  return now.failed.load(std::memory_order_relaxed);
}

void report_all_failures() noexcept {
  if (sched::report_all_failures()) sched::life().failed.store(true, std::memory_order_relaxed);
}

void leave_tasks() noexcept { sched::life().leaves_tasks = true; }

void before_end(void (*const hook)(int status)) { sched::life().before_end = hook; }

void drain() noexcept {
  sched::RuntimeState* const runtime = sched::runtime();
  if (runtime == nullptr) return;
  if (in_spawned_task()) return sched::drain_own();  // the other tasks may wait for this one
  sched::come_to_rest(*runtime);
  sched::open_door();
}

}  // namespace imbrex::detail

namespace imbrex {

namespace {

[[gnu::cold, noreturn]] void refuse_to_stop() {
  base::report(fmt::format(
      "a Runtime object is destroyed in {}, but {}", detail::describe_current_task(),
      sched::current_worker() != nullptr
          ? "tasks must have ended before it: destroy it outside of tasks"
          : "main has made it, and runs tasks itself: destroy it in main"));
  base::abort();
}

}  // namespace

Runtime::~Runtime() {
  sched::RuntimeState* const runtime = sched::runtime();
  if (runtime == nullptr || runtime->stopping.load(std::memory_order_relaxed)) {
    return;  // the end of the program, or fork, came before
  }
  const sched::Worker* const worker = sched::current_worker();
  const bool main_serves = runtime->workers[0]->root != nullptr;
  const bool may = worker != nullptr ? worker->id == 0 && worker->task == worker->root &&
                                           worker->callbacks == 0
                                     : !main_serves;
  if (!may) refuse_to_stop();
  sched::end_scopes_of_thread();
  sched::come_to_rest(*runtime);
  std::vector<std::thread> threads;
  {
    const std::lock_guard guard(sched::life().lock);
    threads = sched::stop(*runtime);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace imbrex
