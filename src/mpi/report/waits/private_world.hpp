// SPDX-License-Identifier: BSD-3-Clause
// The runtime's own communicator, a duplicate of MPI_COMM_WORLD: no message of the program is
// touched there. (Reports have a communicator of their own, because they must work when everything
// else hangs.)
//
// Thread safety: open() and close() in MPI_Init and MPI_Finalize; any thread calls the rest in
// between.
#pragma once

#include <mpi.h>

namespace imbrex::mpi::private_world {

// Collective. Errors there are returned.
void open();
void close() noexcept;

[[nodiscard]] MPI_Comm comm() noexcept;
[[nodiscard]] int rank() noexcept;
[[nodiscard]] int size() noexcept;

// A tag that no other process draws (it contains this process's rank), for the calls of tagged.cpp.
[[nodiscard]] int draw_tag() noexcept;

}  // namespace imbrex::mpi::private_world
