// SPDX-License-Identifier: BSD-3-Clause
// A child of fork() starts a runtime of its own, at its first task. Its process has one thread and
// a copy of the parent's memory, in which other threads of the parent may have stood anywhere.
// docs/design/fork.md has the argument.
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "base/check.hpp"
#include "base/spin_lock.hpp"
#include "base/threads/threads.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "sched/life/life.hpp"
#include "sched/life/visit.hpp"
#include "sched/run/loop/loop.hpp"
#include "sched/run/notes.hpp"
#include "task/failure.hpp"

namespace imbrex::sched {

namespace {

using Hook = void (*)() noexcept;
std::array<std::atomic<Hook>, 4> hooks{};  // set once each

// The locks that fork() holds while it copies the memory.
struct Held {
  std::mutex forking;                    // guards the rest; one thread forks at a time
  base::LastingLocks* tables = nullptr;
  bool life = false;                     // Life::lock
  RuntimeState* runtime = nullptr;       // its slots are locked; null unless `life`
};
Held& held() noexcept {
  static Held* const never_destroyed = new Held;
  return *never_destroyed;
}

// Waits while another thread starts or stops a runtime. That takes milliseconds, unless it runs
// destructors of the program, which may wait for the calling thread, or be its caller.
bool take_life() noexcept IMBREX_LOCKS_NOT_SEEN {
  constexpr std::chrono::milliseconds patience{200};
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!life().lock.try_lock()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

void before_fork() noexcept IMBREX_LOCKS_NOT_SEEN {
  Held& now = held();
  now.forking.lock();
  now.life = take_life();
  now.runtime = now.life ? runtime() : nullptr;
  if (now.runtime != nullptr) {
    now.runtime->task_slots.hold();
    now.runtime->small_slots.hold();
  }
  now.tables = base::LastingLocks::take_all();
}

void give_memory_back() noexcept IMBREX_LOCKS_NOT_SEEN {
  base::LastingLocks::give_all(held().tables);
  if (held().runtime == nullptr) return;
  held().runtime->small_slots.give_up();
  held().runtime->task_slots.give_up();
}

// The child makes both anew, but ThreadSanitizer remembers who locked a mutex.
void release_life() noexcept IMBREX_LOCKS_NOT_SEEN {
  if (held().life) life().lock.unlock();
  held().forking.unlock();
}

void after_fork_in_parent() noexcept {
  give_memory_back();
  release_life();
}

// ---- the child -------------------------------------------------------------------------------

// The tasks of the parent's runtime stay in its memory, which the child keeps for ever. Futures of
// complete tasks have their results; the other tasks do not run here.
void end_tasks_of_parent(RuntimeState& parents) noexcept {
  static constexpr const char* text =
      "imbrex: the task runs in the parent of this process: a child of fork() has copies of "
      "complete tasks only; wait for the task before fork(), or spawn it in the child";
  task::Failure& failure = task::failure_of_nobody(std::make_exception_ptr(Error(text)));
  task::take(failure);
  parents.task_slots.for_each([&](std::byte* const slot) {
    auto& task = *reinterpret_cast<Task*>(slot);
    const task::State state = task.state.load(std::memory_order_relaxed);
    if (state == task::State::free || task.is_root()) return;
    if (state != task::State::complete) {
      task::set_failure(task, task::share(failure));
      task.state.store(task::State::complete, std::memory_order_relaxed);
      task.event.head.store(detail::EventWord::fired, std::memory_order_relaxed);
    }
    task.accesses = nullptr;
    task.family = nullptr;
    task.slot_class = 0;
    task.fiber = &parents;  // recycle() reads it
    parents.keepers.fetch_add(1, std::memory_order_relaxed);
  });
}

// The open scopes of the forking code stay open, and the child's code goes on in them. The parent's
// tasks in them are not waited for.
void empty_scopes(task::Family& family) noexcept {
  for (task::Scope* scope = family.current; scope != nullptr; scope = scope->outer) {
    scope->finished.store(0, std::memory_order_relaxed);
    scope->spawned = 0;
    scope->awaiting = task::Await::nothing;
    scope->owns = false;
    scope->has_region.store(false, std::memory_order_relaxed);
    ::new (&scope->lock) base::SpinLock;
    scope->failures = nullptr;
  }
  family.children.finish = nullptr;
  family.table = nullptr;
  family.holds = nullptr;
  family.registrations = nullptr;
}

// The end of this body would return into the loop of a worker of the parent: end_open_scopes()
// finds that a scope is left open, and refuses.
void forbid_return(Task& task) noexcept {
  static task::Scope around;
  task.family = new task::Family;
  task.family->children.owner = &task;
  task.family->children.outer = &around;
  task.family->current = &task.family->children;
}

// The calling code becomes the code of the child's main thread, in the same scopes and on the same
// stack. Call it after end_tasks_of_parent().
void take_over_code(Worker& forking, task::Family* const family) noexcept {
  Life& now = life();
  const fiber::Fiber* const fiber = forking.fiber;
  now.forked.stack = fiber != nullptr && !fiber->native ? fiber->stack : fiber::Stack{};
  now.forked.family = family;
  if (family != nullptr) empty_scopes(*family);
  Task* const task = forking.task;
  if (task != nullptr && !task->is_root()) forbid_return(*task);
}

// A worker's thread is bound to its processor; the child's workers may use all of the parent's.
void unbind(const Worker& forking) noexcept {
  const RuntimeState& parents = *forking.runtime;
  if (!parents.options.BIND || forking.foreign() || forking.joined || forking.root != nullptr) {
    return;
  }
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int processor : parents.processors) CPU_SET(processor, &mask);
  if (parents.reserved >= 0) CPU_SET(parents.reserved, &mask);
  (void)sched_setaffinity(0, sizeof mask, &mask);  // refused: it has one processor
}

// Everything of Life that belongs to the parent's runtime and its threads.
void renew_life(const bool had_runtime) noexcept {
  Life& now = life();
  ::new (&now.lock) std::mutex;
  ::new (&now.end_lock) std::mutex;
  ::new (&now.blocked_watch) BlockedWatch;
  now.closed.store(false, std::memory_order_relaxed);
  now.runtime.store(nullptr, std::memory_order_relaxed);
  now.process.store(0, std::memory_order_relaxed);
  now.ending_thread.store(0, std::memory_order_relaxed);
  now.failed.store(false, std::memory_order_relaxed);
  now.leaves_tasks = now.start_throws = now.summary_printed = false;
  now.before_end = nullptr;
  now.rank = 0;
  now.ranks.store(1, std::memory_order_relaxed);
  now.world = 0;
  if (!had_runtime) now.config = {};
  now.forked.is_child = true;
}

void after_fork_in_child() noexcept {
  give_memory_back();
  for (const std::atomic<Hook>& hook : hooks) {
    if (const Hook call = hook.load(std::memory_order_acquire)) call();
  }
  Worker* const forking = thread_worker();
  const bool runs = forking != nullptr && !forking->over.load(std::memory_order_relaxed);
  task::Family* const family =
      runs && forking->task != nullptr ? forking->task->family : nullptr;
  if (held().runtime != nullptr) end_tasks_of_parent(*held().runtime);
  life().forked = {};
  if (runs) {
    take_over_code(*forking, family);
    unbind(*forking);
  }
  forget_thread();
  forget_kept_trace();
  flight::forget();
  task::Scope::forget_all();
  (void)task::take_lost_failures();
  task::forget_failed();
  base::forget_threads();
  release_life();
  renew_life(life().runtime.load(std::memory_order_relaxed) != nullptr);
  ::new (&held()) Held;
}

// When the library is loaded, and so before any handler of the program.
[[gnu::constructor]] void notice_forks() {
  (void)held();
  (void)life();
  pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
}

}  // namespace

void refuse_to_return(const Task& task) noexcept {
  base::report(fmt::format(
      "the body of task {} returns in a child of fork(), and would go on in a thread that only the "
      "parent has: end the child in the task that forks, by exit(), _exit() or exec()",
      describe(task)));
  ::_exit(EXIT_FAILURE);
}

}  // namespace imbrex::sched

namespace imbrex::detail {

void in_child_of_fork(void (*const hook)() noexcept) {
  for (std::atomic<sched::Hook>& place : sched::hooks) {
    sched::Hook nobody = nullptr;
    if (place.compare_exchange_strong(nobody, hook, std::memory_order_acq_rel)) return;
    if (nobody == hook) return;
  }
}

}  // namespace imbrex::detail
