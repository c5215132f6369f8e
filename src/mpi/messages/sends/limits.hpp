// SPDX-License-Identifier: BSD-3-Clause
// How many long messages are in flight at once. turns.cpp keeps to the limits, outgoing.cpp hands
// them over in MPI_Init. Knows neither MPI nor tasks.
#pragma once

#include <cstdint>

#include "mpi/abi/tcp_bytes.hpp"

namespace imbrex::mpi::sends {

using Time = std::int64_t;  // in nanoseconds, from any moment on

[[nodiscard]] inline Moved nothing_moved(bool) noexcept { return {}; }

struct Limits {
  int each = 2;                     // under way to one process
  // So many bytes may be under way, whatever their number; more where the network is not watched.
  // 0: only the number counts.
  std::int64_t bytes = 1024 * 1024;
  Time patience = 0;                 // at least
  Moved (*network)(bool look_for_new) noexcept = &nothing_moved;  // what the network has done
  // To so many processes large parts of collectives are under way. If all ranks send to all at
  // once, some messages are slow by chance, and in the end links are idle; and no block is here
  // early.
  int with_parts = 2;
};

// The limits that MPI_Init hands over; `network` is set there. Only tests change them, before
// MPI_Init, so that short programs have messages that wait; therefore libimbrex_mpi.so shows it.
[[gnu::visibility("default")]] [[nodiscard]] Limits& initial_limits() noexcept;

}  // namespace imbrex::mpi::sends
