// SPDX-License-Identifier: BSD-3-Clause
// The bytes that this process has moved over TCP, as the kernel counts them: MPI does not say
// whether a long message that is under way moves. Used by messages/sends/ and report/; knows no
// MPI.
#pragma once

#include <cstdint>

namespace imbrex::mpi {

struct Moved {
  std::uint64_t sent = 0;      // bytes that peers have acknowledged
  std::uint64_t received = 0;
  bool queued = false;         // bytes are in the system that no peer has acknowledged
};

// The sums over the connections that are open now: a sum falls when a connection is closed. Those
// that were opened in the last 20 ms count only if `look_for_new`, which takes some 10 microseconds
// more. Zeros where MPI uses no TCP.
//
// Thread safety: any thread.
[[nodiscard]] Moved moved_over_tcp(bool look_for_new) noexcept;

}  // namespace imbrex::mpi
