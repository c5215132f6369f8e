// SPDX-License-Identifier: BSD-3-Clause
// The bytes that this process has moved over TCP, as the kernel counts them: MPI does not tell
// whether a long message in flight moves. Used by messages/sends/ and report/; knows no MPI.
#pragma once

#include <cstdint>

namespace imbrex::mpi {

struct Moved {
  std::uint64_t sent = 0;      // bytes that peers have acknowledged
  std::uint64_t received = 0;
  bool queued = false;         // the system has bytes that no peer has acknowledged
};

// The sums over the open connections: a sum falls when a connection is closed. Connections opened
// in the last 20 ms count only with `look_for_new`, which takes some 10 microseconds more. Zeros if
// MPI uses no TCP.
//
// Thread safety: any thread.
[[nodiscard]] Moved moved_over_tcp(bool look_for_new) noexcept;

}  // namespace imbrex::mpi
