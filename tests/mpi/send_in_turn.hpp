// SPDX-License-Identifier: BSD-3-Clause
// Of long messages one is in flight at a time to each rank, so that nearly all wait for their turn.
// Used before MPI_Init by programs that also set IMBREX_SENDS_ABOVE.
#pragma once

#include "mpi/messages/sends/limits.hpp"

namespace imbrex::test {

inline void send_in_turn() noexcept {
  mpi::sends::initial_limits().each = 1;
  mpi::sends::initial_limits().bytes = 0;
}

}  // namespace imbrex::test
