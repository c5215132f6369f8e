// SPDX-License-Identifier: BSD-3-Clause
// Where a thread that is no worker waits for other threads. All in this header, so that libraries
// above the core use it, too.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/sleep/futex.hpp"

namespace imbrex::base {

// One thread, the owner, waits at a bell until other threads notify it. A notification lasts until
// the owner consumes it (was_notified()), so the owner consumes first, then looks for work, then
// waits. Thread safety: any thread notifies; only the owner calls the other functions. Why no
// notification is lost: all changes are read-modify-writes of one word. A notification after the
// owner has consumed one lets the next wait end at once; whatever happened before an earlier
// notification is visible to the owner, who has read its change or a later one. A plain store of
// the owner's would end the notifiers' release sequence (tests/models/bell.pml).
template <Reach reach>
class BellOf {
 public:
  // If several threads notify, the bell must outlast all these calls. If one does, the owner may
  // destroy the bell as soon as it has consumed the notification.
  void notify() noexcept;
  // True if a notification has come since the owner last consumed one; consumes it.
  [[nodiscard]] bool was_notified() noexcept {
    return word_.load(std::memory_order_relaxed) == notified &&
           word_.exchange(quiet, std::memory_order_acq_rel) == notified;
  }
  // Waits for a notification, or until `timeout_ns` has passed (0: no limit); true if one came.
  [[nodiscard]] bool wait(std::uint64_t timeout_ns) noexcept;

 private:
  enum Word : std::uint32_t { quiet, notified, awaited };
  std::atomic<std::uint32_t> word_{quiet};  // notify() sets notified; the owner the others
};
using Bell = BellOf<Reach::process>;
// Lies in memory that processes share. Memory of zeros is a quiet bell.
using SharedBell = BellOf<Reach::node>;

// ---- bodies ----------------------------------------------------------------------------------

template <Reach reach>
void BellOf<reach>::notify() noexcept {
  // After this line the owner may destroy the bell; a late wake-up wakes at most one thread for
  // nothing.
  if (word_.exchange(notified, std::memory_order_acq_rel) != awaited) return;
  futex_wake<reach>(word_, any_bit);
}

template <Reach reach>
bool BellOf<reach>::wait(const std::uint64_t timeout_ns) noexcept {
  const std::uint64_t end = time_after(timeout_ns);
  std::uint32_t expected = quiet;
  if (!word_.compare_exchange_strong(expected, awaited, std::memory_order_acq_rel)) {
    return was_notified();
  }
  while (word_.load(std::memory_order_relaxed) == awaited) {
    futex_wait<reach>(word_, awaited, end, any_bit);
    expected = awaited;
    if (end != 0 && monotonic_ns() >= end &&
        word_.compare_exchange_strong(expected, quiet, std::memory_order_acq_rel)) {
      return false;
    }
  }
  return was_notified();
}

}  // namespace imbrex::base
