// SPDX-License-Identifier: BSD-3-Clause
// The data that the engine, reports and active messages share: the number of messages, and the flag
// of the one thread that handles them.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/spin_lock.hpp"
#include "mpi/engine/forever.hpp"

namespace imbrex::mpi {

struct Traffic {
  // REQUIRES: the thread holds `handling`, so no other thread writes.
  void count_handled() noexcept {
    handled.store(handled.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Held by the thread that handles messages, and while a report reads the waits of tasks. Only
  // tried; it guards the calls of handlers.
  base::SpinLock handling;
  // Any thread; relaxed, since a message is counted before it can be handled.
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> handled{0};
  std::atomic<bool> open{false};  // MPI_Init and MPI_Finalize write it
};
inline constinit Forever<Traffic> the_traffic;
[[nodiscard]] inline Traffic& traffic() noexcept { return the_traffic.it; }

}  // namespace imbrex::mpi
