// SPDX-License-Identifier: BSD-3-Clause
// The number of operations of a space on this rank that have begun and not ended, in two counts:
// tasks, and transfers with all other internal steps. One thread waits until a count is small
// enough.
//
// Thread safety: the inserting thread calls wait(), and begin() unless a loop runs; tasks of a loop
// call begin(); any thread calls end().
// Invariants:
//   (1) a thread that ends an operation uses this object no more once it has given its count back,
//       unless the same exchange has cleared `waits`: the waiter then exists until it is fired.
#pragma once

#include <atomic>
#include <cstdint>

#include "imbrex/detail/waist.hpp"

namespace imbrex::distributed {

class Pending {
 public:
  static constexpr std::uint64_t task = 1;
  static constexpr std::uint64_t step = std::uint64_t{1} << 32;

  void begin(const std::uint64_t what) noexcept {
    word_.fetch_add(what, std::memory_order_relaxed);  // relaxed: it has not begun yet
  }
  void end(const std::uint64_t what) noexcept {
    std::uint64_t now = word_.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
      next = now - what;
      // Relaxed: written before `waits` was set, which this thread has read.
      if ((next & waits) != 0 && fits(next, most_.load(std::memory_order_relaxed))) next &= ~waits;
      // acq_rel: the waiter sees the effects of the operations.
    } while (!word_.compare_exchange_weak(now, next, std::memory_order_acq_rel,
                                          std::memory_order_acquire));
    if (((now ^ next) & waits) != 0) detail::fire(*event_);
  }

  [[nodiscard]] std::uint64_t tasks() const noexcept {
    return word_.load(std::memory_order_relaxed) & tasks_mask;
  }
  [[nodiscard]] bool none() const noexcept {
    return word_.load(std::memory_order_acquire) == 0;
  }
  // Suspends until there are at most `tasks_most` tasks.
  void wait_for_room(const std::uint64_t tasks_most, const char* const what) {
    wait(tasks_most, what);
  }
  void wait_for_all(const char* const what) { wait(all, what); }

 private:
  static constexpr std::uint64_t tasks_mask = step - 1;
  static constexpr std::uint64_t waits = std::uint64_t{1} << 63;
  static constexpr std::uint64_t all = UINT64_MAX;

  [[nodiscard]] static bool fits(const std::uint64_t word, const std::uint64_t most) noexcept {
    return most == all ? (word & ~waits) == 0 : (word & tasks_mask) <= most;
  }
  void wait(const std::uint64_t most, const char* const what) {
    detail::EventWord event;
    event_ = &event;
    most_.store(most, std::memory_order_relaxed);
    std::uint64_t now = word_.load(std::memory_order_acquire);
    do {
      if (fits(now, most)) return;
      // release: a thread that reads the bit sees the writes before.
    } while (!word_.compare_exchange_weak(now, now | waits, std::memory_order_acq_rel,
                                          std::memory_order_acquire));
    detail::await(event, {.kind = detail::WaitKind::event, .what = what});
  }

  std::atomic<std::uint64_t> word_{0};
  std::atomic<std::uint64_t> most_{0};
  detail::EventWord* event_ = nullptr;  // of the waiter; read by the thread that clears the bit
};

}  // namespace imbrex::distributed
