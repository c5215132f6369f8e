// SPDX-License-Identifier: BSD-3-Clause
// Under policy ga ranks tell each other how long the work is that a message has opened where it was
// received. They use the private communicator, so that no message of the program's is touched. Lost
// figures harm nobody, so nothing is waited for but at the end.
//
// Thread safety: sent, received and poll by any thread; open and close by one.
#pragma once

#include <cstdint>

namespace imbrex::mpi::paths {

// Collective over MPI_COMM_WORLD, in MPI_Init and MPI_Finalize, if the policy of every rank wants
// it.
void open();
void close();
[[nodiscard]] bool are_open() noexcept;

// A message between this rank and `peer` of MPI_COMM_WORLD; `communicator` as in a MessageRecord.
void sent(int peer, int tag, std::uint32_t communicator) noexcept;
void received(int peer, int tag, std::uint32_t communicator) noexcept;

// Called again and again while workers poll; looks once in a millisecond.
void poll() noexcept;

}  // namespace imbrex::mpi::paths
