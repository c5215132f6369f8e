// SPDX-License-Identifier: BSD-3-Clause
// MPI_Comm_size in a process that `imbrex simulate` has started: it stands for all ranks of a
// simulation, so that the program finds the owners of its data for that number of ranks.
#include <mpi.h>

#include "imbrex/detail/plug_ins.hpp"

// A communicator of the program has all ranks, whatever its members would be: one process cannot
// know. MPI_COMM_SELF has one.
IMBREX_FUNCTION(Comm_size)(MPI_Comm comm, int* size) {
  static const auto ranks = static_cast<int>(imbrex::detail::number_option("SIMULATE_RANKS"));
  const int code = PMPI_Comm_size(comm, size);
  if (ranks != 0 && code == MPI_SUCCESS && comm != MPI_COMM_SELF) [[unlikely]] *size = ranks;
  return code;
}
