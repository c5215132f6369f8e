// SPDX-License-Identifier: BSD-3-Clause
// The thread that makes progress in the modes that have one: how it divides its time between polls
// and leaving the processor to the workers. Knows the poller that it calls, not its work.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/sleep/bell.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/engine/threads/last_join.hpp"
#include "mpi/engine/threads/patience.hpp"

namespace imbrex::mpi::threads {

enum class Pace : std::uint8_t {
  steps_in,  // sleeps, and polls when no worker has for a while
  shares,    // polls, and backs off while the workers need the processors
  owns,      // polls all the time, and drives MPI when nothing is outstanding
  serves     // only runs the errands of others
};

// Work that another thread gives to this one. It lies on the stack of that thread.
struct Errand {
  void (*function)(void* arguments);
  void* arguments;
  Errand* next = nullptr;
  std::atomic<bool> done{false};  // the progress thread sets it; release pairs with the wait for it
};

// Thread safety: one thread calls start() and stop(); any thread calls the rest.
// Invariants: (1) with `steps_in`, `shares` and `serves` the thread sleeps only at `bell_`, or for
// a short nap. A thread that makes something outstanding, or leaves an errand, wakes it afterwards.
// Before the thread sleeps it consumes the bell's notification, then looks for work (base::Bell).
class ProgressThread {
 public:
  // `drive` makes progress without an outstanding operation; called only with Pace::owns.
  struct Setup {
    const detail::Poller* poller;
    Pace pace;
    std::uint64_t gap_us;  // for Pace::steps_in
    int processor;         // -1: any
    void (*drive)();
  };
  static constexpr Setup serving{nullptr, Pace::serves, 0, -1, nullptr};
  void start(const Setup& setup);
  void serve();                      // start() with Pace::serves
  void change(const Setup& setup);   // by the thread itself, in an errand
  // Returns when the thread has run it. REQUIRES: the thread has been started, and is not the
  // caller.
  void run(Errand& errand) noexcept;
  void run_errands() noexcept;       // runs the waiting errands; by the thread itself, also within
                                     // an errand
  [[nodiscard]] bool is_caller() const noexcept;
  void stop();  // returns when the thread has ended; no effect if it is the caller, or was never
                // started
  // stop() at exit(); does not wait for a thread that itself waits for the thread which ends the
  // process
  void leave();
  void wake() noexcept { bell_.notify(); }

  [[nodiscard]] std::uint64_t polls() const noexcept {
    return polls_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] double seconds() const noexcept;  // of processor time

 private:
  void run();
  void request_stop() noexcept;
  void prepare() noexcept;
  void sleep_until_woken() noexcept;
  void step_in();
  void poll_while_it_moves();
  void nap_at_a_price(std::uint64_t ns) noexcept;
  void share();
  void own();
  [[nodiscard]] bool quiet() const noexcept;
  [[nodiscard]] bool poll_once();
  void nap(std::uint64_t ns) noexcept;
  void wait_for_bell(std::uint64_t ns) noexcept;

  Setup setup_{};                          // set before the thread, then changed by it
  bool serving_ = false;                   // set before the start: it runs errands
  std::atomic<bool> stopping_{false};      // stop() sets it
  base::Bell bell_;                        // see (1)
  base::Bell end_of_naps_;                 // stop() notifies it
  std::atomic<Errand*> errands_{nullptr};  // any thread pushes, the thread takes all
  std::atomic<bool> has_processor_{false}; // set by the thread; for threads that wait for it
  std::atomic<pthread_t> self_{};          // the thread sets it; others compare it with themselves
  std::atomic<std::uint64_t> polls_{0};    // the thread writes it
  std::atomic<std::uint64_t> cpu_ns_{0};   // the thread writes it at its end
  std::thread thread_;
  LastJoin last_join_;

  // Only the thread uses the following.
  std::uint64_t last_ns_ = 0;      // time of its last poll, or of its wake-up
  std::uint64_t cost_ns_ = 500;    // of a poll that finds nothing: the least of late
  int in_vain_ = 0;                // number of polls in a row without success
  // Used with `steps_in` only.
  std::uint64_t woken_ns_ = 0;      // time of its last wake-up by the bell
  Patience patience_;
  std::uint64_t wake_ns_ = 40'000;   // see nap_at_a_price(); high until it is known
  std::uint64_t napped_at_ns_ = 0;   // processor time at the end of its last nap
  std::uint64_t moment_ns_ = 0;    // how long it waits for more after a poll that moved data
};

// The thread of this process.
[[nodiscard]] ProgressThread& the_thread() noexcept;

}  // namespace imbrex::mpi::threads
