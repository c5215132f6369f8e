// SPDX-License-Identifier: BSD-3-Clause
// The trace of a program that does not reach its end: it hangs and is aborted, a signal ends it, or
// another rank has failed. A trace is most useful then.
//
// A signal handler may do next to nothing. A thread of its own therefore writes the files, while
// the handler waits for it; then the signal goes on to the handler before. If the thread does not
// finish, because the interrupted thread holds a lock, the program ends without a trace.
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "sched/life/life.hpp"
#include "sched/life/process.hpp"
#include "sched/life/visit.hpp"

namespace imbrex::sched {

namespace {

// The signals that end programs. Mostly a launcher sends one.
constexpr int ends[] = {SIGABRT, SIGBUS,  SIGFPE,  SIGHUP,  SIGILL,
                        SIGINT,  SIGQUIT, SIGSEGV, SIGTERM, SIGXCPU};

// Written once in a process, before the first handler is installed; never closed or removed, since
// a signal may come at any time.
struct Keeper {
  int descriptor = -1;                      // the thread reads it
  pid_t process = 0;                        // 0: it has no thread
  bool handles = false;                     // the handlers are installed, perhaps by a parent
  struct sigaction previous[NSIG] = {};     // the handlers before
  std::atomic<int> signal{0};               // the first signal, by its handler
  std::atomic<bool> written{false};         // by the thread
  std::atomic<bool> saves{false};           // any thread: the first one writes, later ones do not
};
Keeper keeper;

void wait_for_files() noexcept {
  constexpr int rounds = 500;  // of 10 ms
  for (int round = 0; round < rounds && !keeper.written.load(std::memory_order_acquire); ++round) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
    nanosleep(&pause, nullptr);
  }
}

void pass_on(const int signal, siginfo_t* const info, void* const context) {
  struct sigaction before = keeper.previous[signal];
  if (signal == SIGABRT && base::is_dropped(before)) before = {};  // SIG_DFL
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler == SIG_DFL) {
    sigaction(signal, &before, nullptr);
    const bool faults = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE ||
                        signal == SIGILL;
    // A fault repeats by itself, at its place; a sent signal is sent again.
    if (!faults || info->si_code <= 0) raise(signal);
  } else if (before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
}

extern "C" void on_end(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  int nobody = 0;
  if (keeper.process == getpid()) {
    if (keeper.signal.compare_exchange_strong(nobody, signal, std::memory_order_acq_rel)) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t done = ::write(keeper.descriptor, &one, sizeof one);
    }
    wait_for_files();
  }
  errno = error;
  pass_on(signal, info, context);
}

[[noreturn]] void run_keeper() noexcept {
  const detail::OwnThread own;
  for (;;) {
    std::uint64_t count = 0;
    if (::read(keeper.descriptor, &count, sizeof count) < 0) continue;
    const int signal = keeper.signal.load(std::memory_order_acquire);
    save_trace(fmt::format("signal {} ({})", signal, strsignal(signal)));
    keeper.written.store(true, std::memory_order_release);
  }
}

// The thread starts with every signal blocked: a handler on it would wait for itself.
bool start_keeper() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread(&run_keeper).detach();
  } catch (const std::system_error&) {
    started = false;  // no thread, no trace of an early end
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

void keep_trace() {
  if (keeper.process != 0) return;
  keeper.descriptor = eventfd(0, EFD_CLOEXEC);
  if (keeper.descriptor < 0 || !start_keeper()) return;
  keeper.process = getpid();
  if (std::exchange(keeper.handles, true)) return;
  for (const int signal : ends) {
    struct sigaction action{};
    if (sigaction(signal, nullptr, &keeper.previous[signal]) != 0 ||
        keeper.previous[signal].sa_handler == SIG_IGN) {
      continue;  // as nohup sets it
    }
    action.sa_sigaction = &on_end;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

void forget_kept_trace() noexcept {
  keeper.process = 0;
  keeper.signal.store(0, std::memory_order_relaxed);
  keeper.written.store(false, std::memory_order_relaxed);
  keeper.saves.store(false, std::memory_order_relaxed);
}

bool keeps_trace_at(const int signal) noexcept {
  return keeper.handles && keeper.previous[signal].sa_handler != SIG_IGN;
}

void save_trace(const std::string& cut) noexcept {
  if (keeper.saves.exchange(true, std::memory_order_acquire)) return;
  // The runtime lives as long as this is held. The interrupted thread may hold it for ever.
  std::unique_lock<std::mutex> guard(end_lock(), std::try_to_lock);
  for (int round = 0; !guard.owns_lock() && round < 100; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    static_cast<void>(guard.try_lock());
  }
  RuntimeState* const here = guard.owns_lock() ? runtime() : nullptr;
  if (here != nullptr && !here->options.TRACE.empty()) {
    trace::TimeBase time = here->time;
    time.stop();
    // Records that were begun before that moment are complete soon.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    write_trace(*here, time, cut);
  }
  keeper.saves.store(false, std::memory_order_release);
}

}  // namespace imbrex::sched
