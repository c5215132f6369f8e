// SPDX-License-Identifier: BSD-3-Clause
// The limits of long messages in flight. turns.cpp enforces them, outgoing.cpp sets them in
// MPI_Init. Knows neither MPI nor tasks.
#pragma once

#include <cstdint>

#include "mpi/abi/tcp_bytes.hpp"

namespace imbrex::mpi::sends {

using Time = std::int64_t;  // in nanoseconds, from an arbitrary origin

[[nodiscard]] inline Moved nothing_moved(bool) noexcept { return {}; }

struct Limits {
  int each = 2;                     // number of messages in flight to one process
  // Number of bytes that may be in flight, however many messages; more where the network is not
  // watched. 0: only the number of messages counts.
  std::int64_t bytes = 1024 * 1024;
  Time patience = 0;                 // minimum
  // counts the bytes that the network has moved
  Moved (*network)(bool look_for_new) noexcept = &nothing_moved;
  // Number of peer processes to which a part above 1 MiB is in flight. If all ranks sent to all at
  // once, some messages would be slow by chance, links would be idle in the end, and no block would
  // arrive early.
  int with_parts = 2;
};

// The limits that MPI_Init sets; it also sets `network`. Only tests change them, before MPI_Init,
// so that short programs have waiting messages; libimbrex_mpi.so therefore exports the function.
[[gnu::visibility("default")]] [[nodiscard]] Limits& initial_limits() noexcept;

}  // namespace imbrex::mpi::sends
