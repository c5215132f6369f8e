// SPDX-License-Identifier: BSD-3-Clause
// A lock that belongs to one thread, its owner, who enters and leaves without an atomic
// read-modify-write and without a fence; others pay for it. For data that its owner uses all the
// time and others now and then (Vasudevan et al., "Simple and fast biased locks", PACT 2010).
//
// Thread safety: enter, leave, answer by the owner; try_lock, unlock by any other thread.
// Why never two are inside: somebody else sets `wanted_` and then waits for one of two things.
//   (1) The owner has answered: it saw `wanted_` and stepped aside. It counts that in `aside_` and
//       looks at `wanted_` once more before it goes on. Both sides' accesses are sequentially
//       consistent: the other reads `aside_` after it has set `wanted_`, so a count that it sees
//       rise was made before the owner's look, which therefore sees `wanted_`.
//   (2) The owner does not answer, for it does something else: after heavy_fence() it either sees
//       `wanted_` when it enters, or `inside_` was visible before (arch.hpp).
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/arch.hpp"

namespace imbrex::base {

class BiasedLock {
 public:
  void enter() noexcept {
    inside_.store(true, std::memory_order_relaxed);
    light_fence();  // pairs with the heavy one below
    if (wanted_.load(std::memory_order_acquire)) [[unlikely]] step_aside();
  }
  void leave() noexcept { inside_.store(false, std::memory_order_release); }
  // Lets others in, where the owner is at work but will not enter for a while. Not inside.
  void answer() noexcept {
    if (wanted_.load(std::memory_order_relaxed)) [[unlikely]] {
      step_aside();
      leave();
    }
  }

  // False if another thread is in, or the owner stays in: perhaps it lost its processor there.
  [[nodiscard, gnu::cold, gnu::noinline]] bool try_lock() noexcept {
    if (wanted_.load(std::memory_order_relaxed) ||
        wanted_.exchange(true, std::memory_order_seq_cst)) {
      return false;
    }
    const std::uint32_t before = aside_.load(std::memory_order_seq_cst);
    for (int round = 0; round < answer_rounds; ++round) {
      if (aside_.load(std::memory_order_seq_cst) != before) return true;  // (1)
      pause();
    }
    heavy_fence();
    for (int round = 0; round < leave_rounds; ++round) {
      if (!inside_.load(std::memory_order_acquire)) return true;  // (2)
      pause();
    }
    unlock();
    return false;
  }
  void unlock() noexcept { wanted_.store(false, std::memory_order_release); }

 private:
  // A busy owner answers within a few hundred ns. It is worth some 10 us to wait for that: a heavy
  // fence interrupts the owner, which takes as long on a virtual machine.
  static constexpr int answer_rounds = 400;
  static constexpr int leave_rounds = 64;

  [[gnu::cold, gnu::noinline]] void step_aside() noexcept {
    do {
      inside_.store(false, std::memory_order_release);
      aside_.fetch_add(1, std::memory_order_seq_cst);
      for (int round = 0; wanted_.load(std::memory_order_seq_cst); ++round) {
        round < 64 ? pause() : static_cast<void>(sched_yield());
      }
      inside_.store(true, std::memory_order_relaxed);
      light_fence();
    } while (wanted_.load(std::memory_order_acquire));
  }

  std::atomic<bool> inside_{false};        // owner
  std::atomic<bool> wanted_{false};        // others; whoever set it holds or awaits the lock
  std::atomic<std::uint32_t> aside_{0};    // owner
};

}  // namespace imbrex::base
