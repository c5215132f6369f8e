// SPDX-License-Identifier: BSD-3-Clause
// The holder: the one thread that makes calls of MPI for packets, and calls handlers.
#pragma once

#include <pthread.h>

#include <atomic>

#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/threads/ship.hpp"
#include "mpi/engine/traffic.hpp"

namespace imbrex::mpi::active {

// Thread safety: any thread. The flag is `traffic().handling`, which a report of a hang takes, too.
// Only take() waits for the flag, and a holder waits for no thread. Data "of the holder" need no
// lock: each holder sees the writes of the one before it, since the flag is a lock.
class Holder {
 public:
  // True if the calling thread is the holder. Only this thread stores its own name, so a stale
  // value cannot equal it.
  [[nodiscard]] bool is_here() const noexcept {
    return base::is_this_thread(thread_.load(std::memory_order_relaxed));
  }
  [[nodiscard]] bool try_take() noexcept IMBREX_LOCKS_NOT_SEEN {
    if (engine().is_held_still() || !traffic().handling.try_lock()) return false;
    thread_.store(base::this_thread(), std::memory_order_relaxed);
    return true;
  }
  // Waits for the flag, in MPI_Finalize or at exit(): no holder waits for these.
  void take() noexcept {
    while (!try_take()) threads::wait_for_lock();
  }
  void give_back() noexcept IMBREX_LOCKS_NOT_SEEN {
    thread_.store(pthread_t{}, std::memory_order_relaxed);
    traffic().handling.unlock();
  }

 private:
  std::atomic<pthread_t> thread_{};  // the holder; other threads compare it with themselves
};

}  // namespace imbrex::mpi::active
