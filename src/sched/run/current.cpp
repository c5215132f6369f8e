// SPDX-License-Identifier: BSD-3-Clause
// The thread-local of the whole program: which worker this thread is; and what it runs.
#include "sched/run/current.hpp"

#include <utility>

#include "base/arch.hpp"
#include "imbrex/detail/groups.hpp"
#include "sched/run/worker.hpp"

namespace imbrex::sched {

namespace {

thread_local Worker* current [[gnu::tls_model("initial-exec")]] = nullptr;

// Plain, so that it may be read when thread_exit is gone.
thread_local Worker* visitors = nullptr;
thread_local bool exit_noticed = false;

struct ThreadExit {
  Worker* worker = nullptr;
  void (*leave)(Worker*) = nullptr;
  ~ThreadExit() {
    exit_noticed = true;
    if (leave != nullptr) leave(worker);
  }
};
thread_local ThreadExit thread_exit;

}  // namespace

[[gnu::noinline]] Worker* current_worker() noexcept {
  asm volatile("");  // not pure: two calls may answer differently
  return current;
}

[[gnu::noinline]] void set_current_worker(Worker* const worker) noexcept {
  current = worker;
  if (worker == nullptr || worker->foreign()) return;  // those are not watched
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

bool at_thread_exit(Worker* const worker, void (*const leave)(Worker*)) noexcept {
  if (exit_noticed) return false;
  thread_exit.worker = worker;
  thread_exit.leave = leave;
  return true;
}

}  // namespace imbrex::sched

// Often asked, so without the call of current_worker(); never inlined, as that is not.
namespace imbrex::detail {

using sched::Worker;

[[gnu::noinline]] RunningBody running_body() noexcept {
  const Worker* const worker = sched::current;
  if (worker == nullptr || worker->task == nullptr) return {};
  return {worker->task->ops, worker->task->closure()};
}

[[gnu::noinline]] RunningBody running_body(bool& enough_queued) noexcept {
  Worker* const worker = sched::current;
  enough_queued = false;
  if (worker == nullptr || worker->task == nullptr) return {};
  task::Task& task = *worker->task;
  if (worker->queues != nullptr && task.group == worker->group &&
      worker->queues->has_newest(worker->enough)) {
    worker->recorder.tasks.add(1);
    enough_queued = true;
  }
  return {task.ops, task.closure()};
}

}  // namespace imbrex::detail
