// SPDX-License-Identifier: BSD-3-Clause
#include "base/spin_lock.hpp"

#include <atomic>

namespace imbrex::base {

namespace {
std::atomic<LastingLocks*> newest{nullptr};  // a list that only grows
}

LastingLocks::LastingLocks(const Action take, const Action give) noexcept
    : take_(take), give_(give), next_(newest.load(std::memory_order_relaxed)) {
  // release: take_all() reads the object.
  while (!newest.compare_exchange_weak(next_, this, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
}

LastingLocks* LastingLocks::take_all() noexcept {
  LastingLocks* const first = newest.load(std::memory_order_acquire);
  for (LastingLocks* lock = first; lock != nullptr; lock = lock->next_) lock->take_(*lock);
  return first;
}

void LastingLocks::give_all(LastingLocks* const taken) noexcept {
  for (LastingLocks* lock = taken; lock != nullptr; lock = lock->next_) lock->give_(*lock);
}

}  // namespace imbrex::base
