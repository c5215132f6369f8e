// SPDX-License-Identifier: BSD-3-Clause
// A lock for sections of a few instructions in which no thread sleeps. Never held over user code or
// MPI.
#pragma once

#include <sched.h>

#include <atomic>

#include "base/arch.hpp"
#include "base/guarded.hpp"

namespace imbrex::base {

class IMBREX_LOCK SpinLock {
 public:
  void lock() noexcept IMBREX_ACQUIRE() {
    for (int round = 0; !try_lock(); ++round) {
      // With more threads than processors the holder may not be running: yield to it.
      if (round < 64) {
        pause();
      } else {
        sched_yield();
      }
    }
  }
  [[nodiscard]] bool try_lock() noexcept IMBREX_TRY_ACQUIRE(true) {
    return !held_.load(std::memory_order_relaxed) &&      // read first: no traffic while held
           !held_.exchange(true, std::memory_order_acquire);  // pairs with unlock()
  }
  void unlock() noexcept IMBREX_RELEASE() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace imbrex::base
