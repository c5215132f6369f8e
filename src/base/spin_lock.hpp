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

// ---- locks of tables that live as long as the process -----------------------------------------

// A child of fork() has no thread but the forking one, so it would wait for ever for a lock that
// another thread held, and might read a table that this thread was changing. fork() therefore takes
// all these locks first (sched/life/life.cpp). It would also wait for a thread that was making a
// static object, so a function that makes such a table is called once at load.
//
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

// `Lock` is base::SpinLock or std::mutex, and no std::shared_mutex: a child cannot unlock one that
// its parent's thread has locked. REQUIRES: the object is never destroyed.
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
