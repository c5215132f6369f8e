// SPDX-License-Identifier: BSD-3-Clause
// Spare threads: a pool that starts one more thread whenever all are busy, so that two calls that
// wait for each other (MPI_Comm_accept and MPI_Comm_connect, for example) both run. The pool has as
// many threads as calls have been in flight at once, and they live until MPI_Finalize.
#include "mpi/calls/spare.hpp"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi {

namespace {

// One call. It lives on the suspended task's stack.
struct SpareCall {
  const char* const name;
  int (*const function)(void*);
  void* const arguments;
  int code = MPI_SUCCESS;    // written before `done` fires, read after it; so is the next field
  KeptHandler kept;          // the error handler that MPI has called; the task calls it
  detail::EventWord done;
};

// The processors of this process, read when the library is loaded: later the calling thread may be
// a worker that is bound to one of them, and a new thread would inherit that.
const cpu_set_t processors = [] {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}();

// Thread safety: any thread uses every member.
// Invariants, while mutex_ is free:
//   (1) waiting_.size() <= idle_: every call has a thread that takes it without waiting for another
//       call's end.
//   (2) every thread is idle (waits for a call or is about to look for one) or busy with one.
class SpareThreads {
 public:
  // False if it needs one more thread and the system gives none: no thread then takes the call.
  [[nodiscard]] bool give(SpareCall& call);
  void end() noexcept;

 private:
  void run();
  [[nodiscard]] SpareCall* take();
  [[nodiscard]] bool may_take() const IMBREX_REQUIRES(mutex_) {
    return closing_ || !waiting_.empty();
  }
  // Releases the lock during the wait.
  void wait_for_change() IMBREX_REQUIRES(mutex_) {
    pthread_cond_wait(&changed_, mutex_.native_handle());
  }

  std::mutex mutex_;  // held for a few instructions, or while a thread is made
  // Signals a change of waiting_ or closing_. std::condition_variable::wait of GCC 12 needs
  // GLIBCXX_3.4.30, which RHEL 9 does not have (docs/user/install.md).
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
  // No bound: one for each suspended task.
  std::deque<SpareCall*> waiting_ IMBREX_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ IMBREX_GUARDED_BY(mutex_);
  std::size_t idle_ IMBREX_GUARDED_BY(mutex_) = 0;
  bool closing_ IMBREX_GUARDED_BY(mutex_) = false;
};

bool SpareThreads::give(SpareCall& call) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() == idle_) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
      return false;
    }
    ++idle_;
  }
  waiting_.push_back(&call);
  pthread_cond_signal(&changed_);
  return true;
}

// Waits for a call; null when the pool ends.
SpareCall* SpareThreads::take() {
  const std::lock_guard lock(mutex_);
  while (!may_take()) wait_for_change();
  --idle_;
  if (waiting_.empty()) return nullptr;
  SpareCall* const call = waiting_.front();
  waiting_.pop_front();
  return call;
}

void SpareThreads::run() {
  std::optional<detail::OwnThread> own(std::in_place);
  // Signals are for the program's own threads.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  sched_setaffinity(0, sizeof processors, &processors);
  while (SpareCall* const call = take()) {
    if (works_on_file(call->name)) own.reset();  // a watching thread must not take it for one that
                                                 // waits
    call->code = call->function(call->arguments);
    if (!own) own.emplace();
    if (kept_count.load(std::memory_order_relaxed) != 0) call->kept = take_kept();
    {
      // Idle before the task resumes: its next call finds this thread.
      const std::lock_guard lock(mutex_);
      ++idle_;
    }
    detail::fire(call->done);
  }
}

void SpareThreads::end() noexcept {
  std::vector<std::thread> threads;
  bool busy;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    threads.swap(threads_);
    busy = idle_ != threads.size();
  }
  pthread_cond_broadcast(&changed_);
  for (std::thread& thread : threads) {
    // A call that never returns from MPI belongs to a task that MPI_Finalize did not wait for.
    if (busy) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

// Never destroyed: a thread may be inside MPI when the program exits.
SpareThreads& spare_threads() {
  static SpareThreads& the_threads = *new SpareThreads;
  return the_threads;
}

void report_call(const char* name, const std::string& what) {
  const std::string place =
      detail::in_task() ? "in task " + detail::describe_current_task() : "outside of tasks";
  std::fprintf(stderr, "imbrex: %s %s %s\n", name, place.c_str(), what.c_str());
}

// An operation that is counted and no longer in flight will soon be uncounted by the thread that
// completed it, which may have to wait for a processor first.
bool nothing_under_way() {
  constexpr std::chrono::seconds patience{1};
  const auto begin = std::chrono::steady_clock::now();
  while (engine().outstanding().load(std::memory_order_acquire) != 0) {
    bool found = std::chrono::steady_clock::now() - begin > patience;
    engine().hold_still([&found](const Operation&) { found = true; }, [](bool) {});
    if (found) return false;
    sched_yield();
  }
  return true;
}

}  // namespace

int call_on_spare_thread(const char* name, int (*function)(void* arguments), void* arguments) {
  SpareCall call{.name = name, .function = function, .arguments = arguments,
                 .code = MPI_SUCCESS, .kept = {}, .done = {}};
  if (!spare_threads().give(call)) {
    report_call(name,
           "blocks its worker: the system gives no thread for the call. Raise the limit of threads "
           "(ulimit -u), or let fewer tasks make such calls at once.");
    return function(arguments);
  }
  detail::await(call.done, {.kind = detail::WaitKind::mpi, .what = name});
  return call_kept(call.kept, call.code);
}

// Within MPI_Finalize, in functions of the program that MPI calls, imbrex is inactive.
int refuse_to_block(const char* name) {
  if (!switches.is_active.load(std::memory_order_relaxed) ||
      (detail::main_is_last() && nothing_under_way())) {
    return MPI_SUCCESS;
  }
  report_call(name,
         "is refused: it may wait for other ranks, and MPI has no non-blocking form of it. It "
         "would block the only thread that calls MPI, since this MPI gives less than "
         "MPI_THREAD_MULTIPLE. Call it in main while there is no other task and no operation in "
         "flight (before the first task, or after a taskwait), or use an MPI that gives "
         "MPI_THREAD_MULTIPLE.");
  return raise_error({.name = name, .comm = MPI_COMM_WORLD}, MPI_ERR_OTHER);
}

void end_spare_threads() noexcept { spare_threads().end(); }

}  // namespace imbrex::mpi
