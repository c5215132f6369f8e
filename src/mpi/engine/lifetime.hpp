// SPDX-License-Identifier: BSD-3-Clause
// Whether the library is active: between MPI_Init and MPI_Finalize. init_and_finalize.cpp sets it;
// all other code reads it.
#pragma once

#include "mpi/abi/switches.hpp"

namespace imbrex::mpi {

// A call that may block, outside of MPI_Init and MPI_Finalize: in a program that uses only
// sessions. Reports that once, if a task makes the call and not MPI_Finalize. Returns false.
[[nodiscard]] bool call_while_inactive() noexcept;

// In a child of fork: MPI does not know this process. From now on the library hands all calls to
// MPI, and says so once.
void leave_calls_to_mpi() noexcept;

// True from MPI_Init to MPI_Finalize, the same on all ranks.
[[nodiscard]] inline bool in_service() noexcept {
  return switches.is_active.load(std::memory_order_relaxed) || call_while_inactive();
}

}  // namespace imbrex::mpi
