// SPDX-License-Identifier: BSD-3-Clause
// The thread-local of the whole program: the worker of this thread, and the code at its exit.
#include "sched/run/current.hpp"

#include <pthread.h>

#include <utility>

#include "base/arch.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "sched/run/worker.hpp"

namespace imbrex::sched {

namespace {

thread_local Worker* current [[gnu::tls_model("initial-exec")]] = nullptr;

// Plain, so that it may be read after thread_exit is destroyed.
thread_local Worker* visitors = nullptr;
thread_local constinit CallbacksOutside callbacks;

// Plain: the key's destructor reads it after the destructors of all thread-locals.
struct ThreadExit {
  Worker* worker;
  void (*leave)(Worker*);
  bool ends;  // the destructor has run
};
thread_local ThreadExit thread_exit{};

// The exit of main's thread: destructors of keys do not run at exit().
struct MainExit {
  void (*leave)() = nullptr;
  ~MainExit() {
    if (leave != nullptr) leave();
  }
};
thread_local MainExit main_exit;

pthread_key_t exit_key;

// Destructors of other keys may use tasks, too: the thread leaves in the second round of all keys.
void end_thread(void* const value) {
  auto& exit = *static_cast<ThreadExit*>(value);
  if (!std::exchange(exit.ends, true) && pthread_setspecific(exit_key, &exit) == 0) return;
  exit.leave(exit.worker);
}

thread_local bool loop_left = false;

}  // namespace

[[gnu::noinline]] Worker* current_worker() noexcept {
  asm volatile("");  // not pure: two calls may return different values
  return current;
}

[[gnu::noinline]] void set_current_worker(Worker* const worker) noexcept {
  current = worker;
  if (worker == nullptr || worker->foreign()) return;  // foreign threads are not watched
  worker->thread_id.store(base::kernel_thread_id(), std::memory_order_relaxed);
}

[[gnu::noinline]] Worker* exchange_current_worker(Worker* const worker) noexcept {
  asm volatile("");
  return std::exchange(current, worker);
}

[[gnu::noinline]] Worker* visitor() noexcept {
  asm volatile("");
  return visitors;
}

[[gnu::noinline]] void set_visitor(Worker* const worker) noexcept { visitors = worker; }

[[gnu::noinline]] CallbacksOutside& callbacks_outside() noexcept { return callbacks; }

bool prepare_thread_exits() noexcept {
  static const bool made = pthread_key_create(&exit_key, &end_thread) == 0;
  return made;
}

void at_thread_exit(Worker* const worker, void (*const leave)(Worker*)) noexcept {
  thread_exit.worker = worker;
  thread_exit.leave = leave;
  (void)pthread_setspecific(exit_key, &thread_exit);
}

void forget_thread() noexcept {
  current = visitors = nullptr;
  loop_left = false;
  if (thread_exit.leave != nullptr) (void)pthread_setspecific(exit_key, nullptr);
  thread_exit = {};
}

[[gnu::noinline]] void note_loop_left() noexcept { loop_left = true; }

[[gnu::noinline]] bool has_left_loop() noexcept {
  asm volatile("");
  return loop_left;
}

void at_main_exit(void (*const leave)()) noexcept { main_exit.leave = leave; }

}  // namespace imbrex::sched

// Called often, so it does not call current_worker(); never inlined, for the reason that holds
// there.
namespace imbrex::detail {

using sched::Worker;

[[gnu::noinline]] RunningBody running_body() noexcept {
  const Worker* const worker = sched::current;
  if (worker == nullptr || worker->task == nullptr || worker->callbacks != 0) return {};
  return {worker->task->ops, worker->task->closure()};
}

[[gnu::noinline]] bool asked_in_vain() noexcept {
  Worker* const worker = sched::current;
  if (worker == nullptr) return false;
  sched::Asking& asking = worker->asking;
  if (asking.of != worker->task) [[unlikely]] asking.begin(worker->task);
  if (++asking.in_a_row < fruitless_asks) [[likely]] return false;
  asking.begin(worker->task);
  return true;
}

[[gnu::noinline]] RunningBody running_body(bool& enough_queued) noexcept {
  Worker* const worker = sched::current;
  enough_queued = false;
  if (worker == nullptr || worker->task == nullptr || worker->callbacks != 0) return {};
  task::Task& task = *worker->task;
  if (worker->queues != nullptr && task.group == worker->group &&
      worker->queues->has_newest(worker->enough)) {
    worker->recorder.tasks.add(1);
    enough_queued = true;
  }
  return {task.ops, task.closure()};
}

[[gnu::noinline]] bool count_call() noexcept {
  Worker* const worker = sched::current;
  if (worker == nullptr || worker->task == nullptr || worker->callbacks != 0) return false;
  if (worker->queues == nullptr || worker->enough_most == INT64_MAX) return false;
  if (worker->task->group != worker->group) return false;
  worker->recorder.tasks.add(1);
  return true;
}

}  // namespace imbrex::detail
