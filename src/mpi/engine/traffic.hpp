// SPDX-License-Identifier: BSD-3-Clause
// What the engine, reports and active messages know of each other: how many messages there have
// been, and the flag of the one thread that handles them.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/spin_lock.hpp"
#include "mpi/engine/forever.hpp"

namespace imbrex::mpi {

struct Traffic {
  // REQUIRES: the thread holds `handling`, so nobody else writes.
  void count_handled() noexcept {
    handled.store(handled.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Held by the thread that handles messages, and while a report looks at what tasks wait for. Only
  // tried; it guards who calls handlers.
  base::SpinLock handling;
  // Any thread; relaxed, since a message is counted before it can be handled.
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> handled{0};
  std::atomic<bool> open{false};  // MPI_Init and MPI_Finalize write it
};
inline constinit Forever<Traffic> the_traffic;
[[nodiscard]] inline Traffic& traffic() noexcept { return the_traffic.it; }

}  // namespace imbrex::mpi
