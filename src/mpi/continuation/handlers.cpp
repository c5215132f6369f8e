// SPDX-License-Identifier: BSD-3-Clause
// Which threads are in a handler now: a list of what stands on their stacks. It is short, and is
// looked at only while it is not empty, so that programs without handlers pay one load.
#include "continuation/handlers.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <vector>

#include "base/spin_lock.hpp"
#include "engine.hpp"

namespace imbrex::mpi {

std::atomic<int> threads_in_handlers{0};

namespace {

struct Running {
  pthread_t thread;
  bool may_call_mpi = true;           // the rest is touched by this thread only
  std::vector<Handler> waiting = {};  // in order
  Running* next = nullptr;            // under the lock
};

base::SpinLock running_lock;
Running* first_running = nullptr;  // under the lock

Running* find() noexcept {
  if (threads_in_handlers.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard guard(running_lock);
  Running* one = first_running;
  while (one != nullptr && pthread_equal(one->thread, pthread_self()) == 0) one = one->next;
  return one;
}

void enter(Running& one) noexcept {
  const std::lock_guard guard(running_lock);
  one.next = first_running;
  first_running = &one;
  threads_in_handlers.fetch_add(1, std::memory_order_relaxed);
}

void leave(Running& one) noexcept {
  const std::lock_guard guard(running_lock);
  Running** place = &first_running;
  while (*place != &one) place = &(*place)->next;
  *place = one.next;
  threads_in_handlers.fetch_sub(1, std::memory_order_relaxed);
}

void call(Running& running, const Handler& handler) noexcept {
  running.may_call_mpi = handler.may_call_mpi;
  try {
    handler.function(handler.argument);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "imbrex: a continuation or event handler has thrown: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "imbrex: a continuation or event handler has thrown something\n");
  }
}

}  // namespace

void run_handler(const Handler& handler) noexcept {
  if (Running* const outer = find()) {
    outer->waiting.push_back(handler);
    return;
  }
  const Callback callback;
  Running running{.thread = pthread_self()};
  enter(running);
  call(running, handler);
  for (std::size_t i = 0; i < running.waiting.size(); ++i) {  // it may grow meanwhile
    call(running, Handler(running.waiting[i]));
  }
  leave(running);
}

bool in_handler() noexcept { return find() != nullptr; }

bool say_refused(const char* call) noexcept {
  const Running* const running = find();
  if (running == nullptr || running->may_call_mpi) return false;
  std::fprintf(stderr,
               "imbrex: %s is called within an event handler and does nothing there: a handler "
               "says what there is to do, and another place does it\n",
               call);
  return true;
}

}  // namespace imbrex::mpi
