// SPDX-License-Identifier: BSD-3-Clause
// The thread-local of the whole program: which worker this thread is.
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
