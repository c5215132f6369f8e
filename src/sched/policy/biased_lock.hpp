// SPDX-License-Identifier: BSD-3-Clause
// A lock that belongs to one thread, its owner, who enters and leaves without an atomic
// read-modify-write and without a fence; other threads pay for it. For data that its owner uses all
// the time and other threads seldom (Vasudevan et al., "Simple and fast biased locks", PACT 2010).
//
// Thread safety: the owner calls enter, leave, answer; any other thread calls try_lock, unlock. Why
// never two threads are inside: another thread states its request and then waits for one of two
// events. All accesses named here are sequentially consistent, except enter()'s fast path.
//   (1) The other thread is `asking`, and the owner answers: it counts that in `aside_` and stays
//       out as long as it finds `asking`. The other thread reads `aside_` after it has begun to
//       ask, so an increased count belongs to a check of the owner that finds `asking`.
//   (2) The owner does not answer, because it does other work. The other thread is `fencing`: after
//       heavy_fence() either it sees `inside_`, or an owner that enters sees `fencing` at least
//       (arch.hpp), and takes the slow path: it sets `inside_` and checks for `taken`. The other
//       thread sets `taken` and checks `inside_`. One of the two sees the other, and gives way.
// The owner therefore waits while the lock is held, but not during a fence, which may take 50 us.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/arch.hpp"
#include "base/guarded.hpp"

namespace imbrex::sched {

class IMBREX_LOCK BiasedLock {
 public:
  // Call before the first use: one thread calls for all, as a simulator does, so try_lock() need
  // not wait.
  void use_one_thread() noexcept { one_thread_ = true; }
  void enter() noexcept IMBREX_ACQUIRE() {
    inside_.store(true, std::memory_order_relaxed);
    base::light_fence();  // pairs with the heavy one below
    if (wanted_.load(std::memory_order_acquire) != Wanted::no) [[unlikely]] enter_slowly();
  }
  void leave() noexcept IMBREX_RELEASE() { inside_.store(false, std::memory_order_release); }
  // Lets other threads in, where the owner works but will not enter for a while. Not inside.
  void answer() noexcept {
    if (wanted_.load(std::memory_order_relaxed) == Wanted::asking) [[unlikely]] step_aside();
  }

  // False if another thread is in, or if the owner stays in: it may have lost its processor there.
  [[nodiscard, gnu::cold, gnu::noinline]] bool try_lock() noexcept IMBREX_TRY_ACQUIRE(true) {
    if (one_thread_) return true;
    Wanted nobody = Wanted::no;
    if (wanted_.load(std::memory_order_relaxed) != Wanted::no ||
        !wanted_.compare_exchange_strong(nobody, Wanted::asking)) {
      return false;
    }
    const std::uint32_t before = aside_.load();
    for (int round = 0; round < answer_rounds; ++round) {
      if (aside_.load() != before) return true;  // (1)
      base::pause();
    }
    wanted_.store(Wanted::fencing);
    base::heavy_fence();
    wanted_.store(Wanted::taken);
    for (int round = 0; round < leave_rounds; ++round) {
      if (!inside_.load()) return true;  // (2)
      base::pause();
    }
    unlock();
    return false;
  }
  void unlock() noexcept IMBREX_RELEASE() { wanted_.store(Wanted::no, std::memory_order_release); }

 private:
  enum class Wanted : std::uint8_t { no, asking, fencing, taken };

  // A busy owner answers within a few hundred ns. A wait of some 10 us is worth it: a heavy fence
  // interrupts the owner, which takes as long on a virtual machine.
  static constexpr int answer_rounds = 400;
  static constexpr int leave_rounds = 64;

  [[gnu::cold, gnu::noinline]] void enter_slowly() noexcept {
    for (;;) {
      inside_.store(true);
      switch (wanted_.load()) {
        case Wanted::no:
        case Wanted::fencing: return;
        case Wanted::asking: step_aside(); break;
        case Wanted::taken:
          inside_.store(false);
          for (int round = 0; wanted_.load() == Wanted::taken; ++round) wait(round);
          break;
      }
    }
  }
  // Answers in a loop, since one asking thread may follow another unseen.
  [[gnu::cold, gnu::noinline]] void step_aside() noexcept {
    inside_.store(false);
    for (int round = 0; wanted_.load() == Wanted::asking; ++round) {
      if (round % 16 == 0) aside_.fetch_add(1);
      wait(round);
    }
  }
  static void wait(const int round) noexcept {
    round < 64 ? base::pause() : static_cast<void>(sched_yield());
  }

  std::atomic<bool> inside_{false};         // owner
  bool one_thread_ = false;                 // constant once the lock is in use
  std::atomic<Wanted> wanted_{Wanted::no};  // other threads; the thread that changed it from `no`
                                            // has it
  std::atomic<std::uint32_t> aside_{0};     // owner
};

}  // namespace imbrex::sched
