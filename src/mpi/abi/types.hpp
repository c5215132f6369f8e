// SPDX-License-Identifier: BSD-3-Clause
// Datatypes that outlive the program's handle. Used by receives that imbrex matches, and by the
// checks of buffers.
#pragma once

#include <mpi.h>

namespace imbrex::mpi {

// The same data as `type`, to be freed by the caller. MPI_Type_dup would copy its attributes too,
// which calls functions of the program's where its call does not.
[[nodiscard]] inline MPI_Datatype copy_of(MPI_Datatype type) noexcept {
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  PMPI_Type_contiguous(1, type, &copy);
  PMPI_Type_commit(&copy);
  return copy;
}

}  // namespace imbrex::mpi
