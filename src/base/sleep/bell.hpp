// SPDX-License-Identifier: BSD-3-Clause
// Where a thread that is no worker waits for other threads. All in this header, so that libraries
// above the core use it, too.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/sleep/futex.hpp"

namespace imbrex::base {

// One thread waits at a bell until other threads ring it. A ring lasts until the owner hears it, so
// the owner hears first, then looks for work, then waits. Thread safety: any thread rings; only the
// owner calls the other functions. Why no ring is lost: all changes are read-modify-writes of one
// word. A ring that comes after the owner has heard one lets the next wait end at once; whatever
// happened before an earlier ring is visible to the owner, who has read its change or a later one.
// A plain store of the owner's would end the ringers' release sequence (tests/models/bell.pml).
class Bell {
 public:
  // If several threads ring, the bell must outlast all these calls. If one does, the owner may
  // destroy the bell as soon as it has heard it.
  void ring() noexcept;
  // True if the bell was rung since the owner last heard it.
  [[nodiscard]] bool was_rung() noexcept {
    return word_.load(std::memory_order_relaxed) == rung &&
           word_.exchange(quiet, std::memory_order_acq_rel) == rung;
  }
  // Waits until the bell is rung, or `timeout_ns` has passed (0: no limit); true if it was rung.
  [[nodiscard]] bool wait(std::uint64_t timeout_ns) noexcept;

 private:
  enum Word : std::uint32_t { quiet, rung, awaited };
  std::atomic<std::uint32_t> word_{quiet};  // ring() sets rung; the owner the others
};

// ---- bodies ----------------------------------------------------------------------------------

inline void Bell::ring() noexcept {
  // After this line the owner may destroy the bell; a late wake-up wakes at most one thread for
  // nothing.
  if (word_.exchange(rung, std::memory_order_acq_rel) == awaited) futex_wake(word_, any_bit);
}

inline bool Bell::wait(const std::uint64_t timeout_ns) noexcept {
  const std::uint64_t end = time_after(timeout_ns);
  std::uint32_t expected = quiet;
  if (!word_.compare_exchange_strong(expected, awaited, std::memory_order_acq_rel)) {
    return was_rung();
  }
  while (word_.load(std::memory_order_relaxed) == awaited) {
    futex_wait(word_, awaited, end, any_bit);
    expected = awaited;
    if (end != 0 && monotonic_ns() >= end &&
        word_.compare_exchange_strong(expected, quiet, std::memory_order_acq_rel)) {
      return false;
    }
  }
  return was_rung();
}

}  // namespace imbrex::base
