// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/threads/thread.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <system_error>
#include <utility>

#include "base/arch.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"

namespace imbrex::mpi::threads {

namespace {

constexpr std::uint64_t us = 1'000;  // in ns

constexpr std::uint64_t nap_max_ns = 10'000 * us;

}  // namespace

// ---- the loop of the thread --------------------------------------------------------------------

void ProgressThread::run() {
  self_.store(base::this_thread(), std::memory_order_relaxed);
  prepare();
  while (!stopping_.load(std::memory_order_relaxed)) {
    run_errands();
    switch (setup_.pace) {
      case Pace::steps_in: step_in(); break;
      case Pace::shares: share(); break;
      case Pace::owns: own(); break;
      case Pace::serves: sleep_until_woken(); break;
    }
  }
  cpu_ns_.store(base::clock_ns(CLOCK_THREAD_CPUTIME_ID), std::memory_order_relaxed);
}

// Polls when no thread has polled for a while.
void ProgressThread::step_in() {
  constexpr std::uint64_t share = 50;  // fraction of the processor time that it may cost
  const std::uint64_t gap_ns = std::max(setup_.gap_us * us, share * wake_ns_);
  const auto polls = [this] {
    const detail::WorkerPolls workers = detail::worker_polls();
    return Patience::Polls{
        .age_ns = std::min(base::monotonic_ns() - last_ns_, workers.age_us * us),
        .apart_ns = workers.apart_us * us};
  };
  if (quiet()) {
    // Programs communicate in pulses: a bell for each would cost the ringing thread a system call.
    const std::uint64_t sleeps_at = woken_ns_ + Patience::rests * gap_ns;
    const std::uint64_t now = base::monotonic_ns();
    if (now < sleeps_at) {
      nap_at_a_price(sleeps_at - now);
    } else {
      sleep_until_woken();
      woken_ns_ = last_ns_;
      patience_.begin(polls(), gap_ns);
    }
  } else if (const std::uint64_t time = patience_.nap_ns(polls(), gap_ns); time != 0) {
    nap_at_a_price(time);
  } else {
    poll_while_it_moves();
  }
}

// A nap, and the cost to wake from it: the least recent processor time from one nap to the next,
// since a longer time means a poll that moved data. The cost counts twice, for the worker that is
// interrupted twice.
void ProgressThread::nap_at_a_price(const std::uint64_t ns) noexcept {
  nap(ns);
  const std::uint64_t now = base::clock_ns(CLOCK_THREAD_CPUTIME_ID);
  wake_ns_ = std::min(2 * (now - napped_at_ns_), wake_ns_ + wake_ns_ / 16);
  napped_at_ns_ = now;
}

// A long message comes in pieces, and each needs a response. If the next piece follows at once, as
// through shared memory, the thread waits for it. If waits are in vain, as on a network that is
// slower than the processor, the thread soon stops waiting.
void ProgressThread::poll_while_it_moves() {
  constexpr std::uint64_t moment_ns = 30 * us;
  constexpr std::uint64_t burst_ns = 1'000 * us;
  const std::uint64_t begin = base::monotonic_ns();
  if (!poll_once()) return;
  std::uint64_t last_success = last_ns_;
  bool more = false;
  do {
    if (poll_once()) {
      last_success = last_ns_;
      more = true;
    }
  } while (last_ns_ - last_success < moment_ns_ && last_ns_ - begin < burst_ns);
  moment_ns_ = more ? moment_ns : moment_ns_ / 2;
}

// Polls all the time while a worker is idle, since a processor is free then. Otherwise it sleeps
// between polls, longer and longer if nothing arrives: among busy workers, sched_yield() would wait
// for a time slice of each of them.
void ProgressThread::share() {
  constexpr std::uint64_t nap_ns = 5 * us;
  constexpr int doublings = 5;
  if (quiet()) {
    sleep_until_woken();
    return;
  }
  in_vain_ = poll_once() ? 0 : in_vain_ + 1;
  if (detail::worker_idles()) {
    sched_yield();
  } else {
    nap(nap_ns << std::min(in_vain_, doublings));
  }
}

// Without an outstanding operation it still drives MPI, for requests that the program itself holds
// and only waits for later.
void ProgressThread::own() {
  if (quiet()) {
    setup_.drive();
  } else {
    (void)poll_once();
  }
  base::pause();
}

// True if the poll completed an operation, or took so long that it moved data.
bool ProgressThread::poll_once() {
  const std::uint64_t begin = base::monotonic_ns();
  const int completed = setup_.poller->poll(setup_.poller->context);
  last_ns_ = base::monotonic_ns();
  const std::uint64_t spent = last_ns_ - begin;
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const bool found = completed != 0 || spent > 8 * cost_ns_;
  if (completed == 0) cost_ns_ = std::min(spent, cost_ns_ + cost_ns_ / 16 + 1);
  return found;
}

bool ProgressThread::quiet() const noexcept {
  if (setup_.pace == Pace::serves) return true;
  // Without a runtime a completion has no task to wake.
  return setup_.poller->outstanding->load(std::memory_order_relaxed) == 0 || !detail::started();
}

// Oldest first.
void ProgressThread::run_errands() noexcept {
  if (errands_.load(std::memory_order_relaxed) == nullptr) return;
  Errand* newest = errands_.exchange(nullptr, std::memory_order_acquire);  // pairs with run()
  Errand* oldest = nullptr;
  while (newest != nullptr) {
    Errand* const next = std::exchange(newest->next, oldest);
    oldest = newest;
    newest = next;
  }
  while (oldest != nullptr) {
    Errand& errand = *std::exchange(oldest, oldest->next);
    errand.function(errand.arguments);
    errand.done.store(true, std::memory_order_release);  // the owner may destroy it from here on
  }
}

void ProgressThread::sleep_until_woken() noexcept {
  in_vain_ = 0;
  wait_for_bell(0);
  last_ns_ = base::monotonic_ns();  // the gap begins when something is outstanding
}

// Returns when woken, or after `ns` (0: no limit), or at once if there is work.
void ProgressThread::wait_for_bell(const std::uint64_t ns) noexcept {
  (void)bell_.was_notified();  // see (1)
  const bool idle = ns != 0 || quiet();
  if (idle && errands_.load(std::memory_order_relaxed) == nullptr &&
      !stopping_.load(std::memory_order_relaxed)) {
    (void)bell_.wait(ns);
  }
}

void ProgressThread::nap(const std::uint64_t ns) noexcept {
  const std::uint64_t time = std::min(ns, nap_max_ns);
  if (serving_) {  // errands wait for it
    wait_for_bell(time);
  } else {
    (void)end_of_naps_.wait(time);
  }
}

void ProgressThread::prepare() noexcept {
  pthread_setname_np(base::this_thread(), "imbrex-progress");
  prctl(PR_SET_TIMERSLACK, 1 * us);  // the default adds 50 microseconds to each nap
  if (setup_.processor < 0) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(static_cast<unsigned>(setup_.processor), &mask);
  const bool bound = sched_setaffinity(0, sizeof mask, &mask) == 0;
  has_processor_.store(bound, std::memory_order_relaxed);
}

// ---- calls of other threads --------------------------------------------------------------------

void ProgressThread::serve() {
  serving_ = true;
  start(serving);
}

void ProgressThread::change(const Setup& setup) {
  setup_ = setup;
  prepare();
}

void ProgressThread::run(Errand& errand) noexcept {
  errand.next = errands_.load(std::memory_order_relaxed);
  while (!errands_.compare_exchange_weak(errand.next, &errand, std::memory_order_release,
                                         std::memory_order_relaxed)) {
  }
  wake();
  constexpr int spins = 100;
  for (int round = 0; !errand.done.load(std::memory_order_acquire); ++round) {
    if (round < spins && has_processor_.load(std::memory_order_relaxed)) {
      base::pause();
    } else {
      sched_yield();  // the thread may need this processor
    }
  }
}

bool ProgressThread::is_caller() const noexcept {
  // Only the thread itself stores its own name, so a stale value cannot equal another's.
  return base::is_this_thread(self_.load(std::memory_order_relaxed));
}

void ProgressThread::start(const Setup& setup) {
  setup_ = setup;
  last_join_.begin();
  stopping_.store(false, std::memory_order_relaxed);
  // Signals of the program go to threads of the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string refused;
  try {
    thread_ = std::thread([this] {
      const detail::OwnThread own;
      run();
      last_join_.left();
    });
  } catch (const std::system_error& error) {
    refused = error.code().message();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (refused.empty()) return;
  throw Error(fmt::format("imbrex: MPI_Init: the system gives no thread that polls MPI ({}): raise "
                          "its limit (ulimit -u, or pids.max of the control group), or set "
                          "IMBREX_PROGRESS=poll",
                          refused));
}

void ProgressThread::request_stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  end_of_naps_.notify();
  wake();
}

void ProgressThread::stop() {
  if (!thread_.joinable() || !last_join_.is_here()) return;
  request_stop();
  if (base::is_this_thread(thread_.native_handle())) return;  // exit() in a callback of the thread
                                                              // itself
  thread_.join();
}

void ProgressThread::leave() {
  if (!thread_.joinable() || !last_join_.is_here()) return;
  request_stop();
  static_cast<void>(last_join_.join(thread_));
}

double ProgressThread::seconds() const noexcept {
  clockid_t clock;
  if (thread_.joinable() &&
      pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) == 0) {
    return static_cast<double>(base::clock_ns(clock)) * 1e-9;
  }
  return static_cast<double>(cpu_ns_.load(std::memory_order_relaxed)) * 1e-9;
}

}  // namespace imbrex::mpi::threads
