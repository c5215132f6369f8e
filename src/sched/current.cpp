// SPDX-License-Identifier: BSD-3-Clause
// The thread-local of the whole program: which worker this thread is; and what it runs.
#include "sched/worker.hpp"

namespace imbrex::sched {

namespace {

thread_local Worker* current [[gnu::tls_model("initial-exec")]] = nullptr;

struct ThreadExit {
  Worker* worker = nullptr;
  void (*detach)(Worker*) = nullptr;
  ~ThreadExit() {
    if (detach != nullptr) detach(worker);
  }
};
thread_local ThreadExit thread_exit;

}  // namespace

[[gnu::noinline]] Worker* current_worker() noexcept {
  asm volatile("");  // not pure: two calls may answer differently
  return current;
}

[[gnu::noinline]] void set_current_worker(Worker* const worker) noexcept { current = worker; }

void at_thread_exit(Worker* const worker, void (*const detach)(Worker*)) {
  thread_exit.worker = worker;
  thread_exit.detach = detach;
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
      worker->queues->newest_first.has(worker->enough)) {
    worker->recorder.tasks.add(1);
    enough_queued = true;
  }
  return {task.ops, task.closure()};
}

}  // namespace imbrex::detail
