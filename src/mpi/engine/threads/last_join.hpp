// SPDX-License-Identifier: BSD-3-Clause
// The end of the process waits for a thread of the library, so that it does not destroy objects
// that the thread uses. It does not wait for ever: the thread may itself wait for a lock of a
// library whose function ends the process (MPI_Abort calls exit() in some MPIs).
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/arch.hpp"
namespace imbrex::mpi::threads {

// Thread safety: the thread calls left() as its last action; one thread at a time calls the rest.
class LastJoin {
 public:
  // Called before the thread is made.
  void begin() noexcept {
    left_.store(false, std::memory_order_relaxed);
    process_ = getpid();
  }
  // A child of fork has no such thread.
  [[nodiscard]] bool is_here() const noexcept { return process_ == getpid(); }
  void left() noexcept { left_.store(true, std::memory_order_release); }

  // `thread` has been told to end. True if it has, and is joined; otherwise it is detached.
  // REQUIRES: nothing that it uses is destroyed if this returns false.
  [[nodiscard]] bool join(std::thread& thread) noexcept {
    constexpr std::chrono::milliseconds patience{100};
    if (!thread.joinable() || !is_here()) return false;
    const auto end = std::chrono::steady_clock::now() + patience;
    const bool itself = base::is_this_thread(thread.native_handle());
    while (!itself && !left_.load(std::memory_order_acquire) &&  // pairs with left()
           std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (itself || !left_.load(std::memory_order_acquire)) {
      thread.detach();
      return false;
    }
    thread.join();
    return true;
  }

 private:
  std::atomic<bool> left_{false};
  pid_t process_ = 0;  // the process with the thread
};

}  // namespace imbrex::mpi::threads
