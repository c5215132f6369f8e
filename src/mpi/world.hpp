// SPDX-License-Identifier: BSD-3-Clause
// MPI's life cycle: between MPI_Init and MPI_Finalize the library is active.
#pragma once

#include <atomic>

namespace imbrex::mpi {

// Written by MPI_Init and MPI_Finalize only; relaxed, since MPI itself orders its users' calls
// behind MPI_Init.
extern std::atomic<bool> is_active;

// True from MPI_Init to MPI_Finalize, on all ranks alike.
[[nodiscard]] inline bool active() noexcept { return is_active.load(std::memory_order_relaxed); }

}  // namespace imbrex::mpi
