// SPDX-License-Identifier: BSD-3-Clause
// Calls that programs loop on and that this library does not change, except that other tasks run in
// between.
#include "mpi/abi/standard.hpp"
#include "mpi/messages/matching/wait.hpp"

IMBREX_FUNCTION(Win_test)(MPI_Win window, int* flag) {
  const int code = PMPI_Win_test(window, flag);
  imbrex::mpi::note_answer("MPI_Win_test", code != MPI_SUCCESS || *flag != 0);
  return code;
}

// Code that waits for a value in the memory of a window loops on it. The call does not say whether
// the value has arrived.
IMBREX_FUNCTION(Win_sync)(MPI_Win window) {
  const int code = PMPI_Win_sync(window);
  imbrex::mpi::note_answer("MPI_Win_sync", code != MPI_SUCCESS);
  return code;
}

#if IMBREX_MPI_4
IMBREX_FUNCTION(Parrived)(MPI_Request request, int partition, int* flag) {
  const int code = PMPI_Parrived(request, partition, flag);
  imbrex::mpi::note_answer("MPI_Parrived", code != MPI_SUCCESS || *flag != 0);
  return code;
}
#endif
