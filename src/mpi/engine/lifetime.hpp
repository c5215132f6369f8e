// SPDX-License-Identifier: BSD-3-Clause
// Whether the library is active: between MPI_Init and MPI_Finalize. init_and_finalize.cpp says so;
// all others ask.
#pragma once

#include <atomic>

namespace imbrex::mpi {

// Written by MPI_Init and MPI_Finalize only; relaxed, since MPI itself orders its users' calls
// behind MPI_Init.
extern std::atomic<bool> is_active;

// Within MPI_Finalize once the library is inactive: MPI calls functions of the program's there (of
// the attributes of MPI_COMM_SELF) and ours, in main, and no task is left that could be blocked.
// Written by MPI_Finalize, read by any thread.
extern std::atomic<bool> is_ending;

// A call that may block, outside of MPI_Init and MPI_Finalize: of a program that uses sessions
// only. Says so once, if a task makes it and not MPI_Finalize. Returns false.
[[nodiscard]] bool call_while_inactive() noexcept;

// True from MPI_Init to MPI_Finalize, on all ranks alike.
[[nodiscard]] inline bool in_service() noexcept {
  return is_active.load(std::memory_order_relaxed) || call_while_inactive();
}

}  // namespace imbrex::mpi
