// SPDX-License-Identifier: BSD-3-Clause
// A duplicate of MPI_COMM_WORLD on which imbrex matches no receives, for tagged.cpp. Used by
// world.cpp.
#pragma once

namespace imbrex::mpi {

// Both collective, in MPI_Init and MPI_Finalize.
void open_private_world();
void close_private_world() noexcept;

}  // namespace imbrex::mpi
