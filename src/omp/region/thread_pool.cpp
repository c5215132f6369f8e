// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/thread_pool.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/error.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/region/gate.hpp"
#include "omp/environment/others.hpp"
#include "omp/environment/machine.hpp"
#include "omp/environment/settings.hpp"
#include "omp/region/team.hpp"
#include "omp/tools/tool.hpp"

namespace imbrex::omp {

namespace {

base::SpinLock lock;
PoolThread* free_threads IMBREX_GUARDED_BY(lock) = nullptr;

void put(PoolThread& thread) noexcept {
  const std::lock_guard guard(lock);
  thread.next = free_threads;
  free_threads = &thread;
}

std::atomic<int> threads_made{0};

[[noreturn, gnu::cold]] void no_thread(const int code) {
  fatal("Thread creation failed: %s. Parallel regions have made %d threads. Ask for smaller teams "
        "(OMP_NUM_THREADS, num_threads), or for smaller stacks (OMP_STACKSIZE), or raise the "
        "system's limits (ulimit -u, ulimit -v, vm.max_map_count, pids.max of the control group)",
        std::strerror(code), threads_made.load(std::memory_order_relaxed));
}

// The code of the thread is a task of the runtime, suspended between regions: a waiting thread
// costs nothing, and the end of the program does not wait for it. Returns if it is given no team.
void* serve(void* const argument) {
  auto& thread = *static_cast<PoolThread*>(argument);
  if (tools::on()) tools::begin_pool_thread();
  try {
    if (!detail::join_runtime()) return nullptr;  // the process ends
    if (tools::on()) watch_switches();
  } catch (const Error& error) {
    fatal("%s", error.what());
  } catch (const std::bad_alloc&) {
    no_thread(ENOMEM);
  }
  for (unsigned seen = 0;; ++seen) {
    wait_until(&thread.assigned, "the next parallel region", [&thread, seen] {
      return thread.assigned.load(std::memory_order_acquire) != seen;  // pairs with assign()
    });
    if (thread.team == nullptr) break;
    const bool borrowed = thread.borrowed;
    const std::vector<Seat>& seats = thread.team->seats;
    if (!seats.empty()) move_to(seats[static_cast<std::size_t>(thread.number)].place, thread.place);
    run_member(*thread.team, thread.number);
    if (borrowed) put(thread);
  }
  delete &thread;
  return nullptr;
}

void assign(PoolThread& thread, Team* const team, const int number, Waking& waking) noexcept {
  thread.team = team;
  thread.number = number;
  thread.assigned.fetch_add(1, std::memory_order_release);
  waking.add(&thread.assigned, INT32_MAX);
}

PoolThread& make_thread() {
  look_for_new_others();
  auto* const thread = new PoolThread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (const std::size_t bytes = settings().stack_bytes; bytes != 0) {
    pthread_attr_setstacksize(&attributes, bytes);
  }
  pthread_t id;
  const int code = pthread_create(&id, &attributes, &serve, thread);
  pthread_attr_destroy(&attributes);
  if (code != 0) no_thread(code);
  threads_made.fetch_add(1, std::memory_order_relaxed);
  return *thread;
}

}  // namespace

PoolThread& take_thread() {
  {
    const std::lock_guard guard(lock);
    if (PoolThread* const thread = free_threads) {
      free_threads = thread->next;
      return *thread;
    }
  }
  return make_thread();
}

void give_back(const std::vector<PoolThread*>& threads) noexcept {
  for (PoolThread* const thread : threads) put(*thread);
}

void forget_threads() noexcept {
  ::new (&lock) base::SpinLock;  // another thread may have held it
  const std::lock_guard guard(lock);
  free_threads = nullptr;
  threads_made.store(0, std::memory_order_relaxed);
}

void end_threads(std::vector<PoolThread*>& threads) noexcept {
  Waking waking;
  for (PoolThread* const thread : threads) assign(*thread, nullptr, 0, waking);
  threads.clear();
}

void assign(PoolThread& thread, Team& team, const int number, Waking& waking) noexcept {
  assign(thread, &team, number, waking);
}

}  // namespace imbrex::omp
