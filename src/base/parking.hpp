// SPDX-License-Identifier: BSD-3-Clause
// Idle threads sleep here until another one wakes them: a futex word for each. No other place
// blocks a worker. This file knows no queue: the caller looks for work between prepare() and
// sleep().
//
// Thread safety: prepare, cancel, sleep by the thread that owns the place; wake by any.
// Why no wake-up is lost: the sleeper sets its word to `drowsy`, runs heavy_fence(), and looks for
// work once more before it sleeps. A waker publishes work, runs light_fence(), and reads the words.
// Either the sleeper sees the work or the waker sees `drowsy` (arch.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/arch.hpp"

namespace imbrex::base {

class Parking {
 public:
  explicit Parking(int places);

  // Announces that the thread of `place` is about to sleep. Then look for work, and cancel() or
  // sleep().
  void prepare(int place) noexcept;
  void cancel(int place) noexcept;
  // Returns when woken, or after `timeout_us` (0: no limit); true if woken.
  bool sleep(int place, std::uint64_t timeout_us) noexcept;

  // To be called after work was published. Wakes one sleeper, if there is any; true if one was
  // woken.
  bool wake_one() noexcept {
    light_fence();
    if (asleep_.load(std::memory_order_relaxed) == 0) [[likely]] return false;
    return wake_any();
  }
  bool wake(int place) noexcept;  // true if that one slept
  void wake_all() noexcept;
  [[nodiscard]] int asleep() const noexcept { return asleep_.load(std::memory_order_relaxed); }

 private:
  [[gnu::noinline]] bool wake_any() noexcept;
  bool wake_if_drowsy(int place) noexcept;

  enum Word : std::uint32_t { awake, drowsy };
  struct alignas(cache_line_bytes) Place {
    std::atomic<std::uint32_t> word{awake};  // owner: awake to drowsy; anybody: back
  };
  std::atomic<int> used_{0};  // places that have ever slept lie below
  std::unique_ptr<Place[]> words_;
  alignas(cache_line_bytes) std::atomic<int> asleep_{0};  // how many words are drowsy
};

// One thread waits at a bell until another one rings it, which happens once for each wait.
// Thread safety: ring() by any thread, once before the owner has heard it; the rest by the owner.
class Bell {
 public:
  // All that happened before is seen by whoever hears it.
  void ring() noexcept;
  // Hears it, if it was rung.
  [[nodiscard]] bool was_rung() noexcept {
    if (word_.load(std::memory_order_acquire) != rung) return false;  // pairs with ring()
    word_.store(quiet, std::memory_order_relaxed);
    return true;
  }
  // The same; returns when it is rung, or after `timeout_us` (0: no limit).
  [[nodiscard]] bool wait(std::uint64_t timeout_us) noexcept;

 private:
  enum Word : std::uint32_t { quiet, rung, awaited };
  std::atomic<std::uint32_t> word_{quiet};  // ring(): to rung; owner: from there, and to awaited
};

}  // namespace imbrex::base
