// SPDX-License-Identifier: BSD-3-Clause
// Locks of tables that live as long as the process. A child of fork() has no thread but the forking
// one, so it would wait for ever for a lock that another thread held, and might read a table that
// this thread was changing. fork() therefore takes all these locks first (sched/life/fork.cpp).
#pragma once

#include <mutex>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"

namespace imbrex::base {

// Thread safety: all. The holder of a lasting lock takes no second one, and does not fork.
class LastingLocks {
 public:
  LastingLocks(const LastingLocks&) = delete;
  LastingLocks& operator=(const LastingLocks&) = delete;
  // Takes every lasting lock that exists. Returns the argument of give_all().
  [[nodiscard]] static LastingLocks* take_all() noexcept;
  static void give_all(LastingLocks* taken) noexcept;

 protected:
  using Action = void (*)(LastingLocks& lock) noexcept;
  LastingLocks(Action take, Action give) noexcept;
  ~LastingLocks() = default;

 private:
  const Action take_;
  const Action give_;
  LastingLocks* next_ = nullptr;  // the lock made before
};

// `Lock` is base::SpinLock or std::mutex. REQUIRES: the object is never destroyed.
template <class Lock>
class IMBREX_LOCK LastingLock : public Lock, private LastingLocks {
 public:
  LastingLock() noexcept : LastingLocks(&take, &give) {}

 private:
  static void take(LastingLocks& lock) noexcept IMBREX_LOCKS_NOT_SEEN {
    static_cast<LastingLock&>(lock).lock();
  }
  static void give(LastingLocks& lock) noexcept IMBREX_LOCKS_NOT_SEEN {
    static_cast<LastingLock&>(lock).unlock();
  }
};

}  // namespace imbrex::base
