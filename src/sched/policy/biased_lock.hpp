// SPDX-License-Identifier: BSD-3-Clause
// A lock that belongs to one thread, its owner, who enters and leaves without an atomic
// read-modify-write and without a fence; others pay for it. For data that its owner uses all the
// time and others now and then (Vasudevan et al., "Simple and fast biased locks", PACT 2010).
//
// Thread safety: enter, leave, answer by the owner; try_lock, unlock by any other thread.
// Why never two are inside: another thread states what it wants and then waits for one of two
// things. All accesses named here are sequentially consistent, save those of enter()'s fast path.
//   (1) It is `asking`, and the owner answers: it counts that in `aside_` and stays out as long as
//       it finds `asking`. The other reads `aside_` after it has begun to ask, so a count that it
//       sees rise was made before a look of the owner's that finds `asking`.
//   (2) The owner does not answer, for it does something else. The other is `fencing`: after
//       heavy_fence() either it sees `inside_`, or an owner that enters sees `fencing` at least
//       (arch.hpp), and then goes the slow way: it sets `inside_` and looks for `taken`. The other
//       sets `taken` and looks for `inside_`. One of the two sees the other, and gives way.
// So the owner waits while the lock is held, but not while a fence, which may take 50 us, is made.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/arch.hpp"
#include "base/guarded.hpp"

namespace imbrex::sched {

class IMBREX_LOCK BiasedLock {
 public:
  // Before the first call: one thread calls for all, as a simulator does, so try_lock() has nobody
  // to wait for.
  void use_one_thread() noexcept { one_thread_ = true; }
  void enter() noexcept IMBREX_ACQUIRE() {
    inside_.store(true, std::memory_order_relaxed);
    base::light_fence();  // pairs with the heavy one below
    if (wanted_.load(std::memory_order_acquire) != Wanted::no) [[unlikely]] enter_slowly();
  }
  void leave() noexcept IMBREX_RELEASE() { inside_.store(false, std::memory_order_release); }
  // Lets others in, where the owner is at work but will not enter for a while. Not inside.
  void answer() noexcept {
    if (wanted_.load(std::memory_order_relaxed) == Wanted::asking) [[unlikely]] step_aside();
  }

  // False if another thread is in, or the owner stays in: perhaps it lost its processor there.
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

  // A busy owner answers within a few hundred ns. It is worth some 10 us to wait for that: a heavy
  // fence interrupts the owner, which takes as long on a virtual machine.
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
  // Answers again and again, since one who asks may follow another unseen.
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
  std::atomic<Wanted> wanted_{Wanted::no};  // others; whoever changed it from `no` has it
  std::atomic<std::uint32_t> aside_{0};     // owner
};

}  // namespace imbrex::sched
