// SPDX-License-Identifier: BSD-3-Clause
// Which version of the standard this MPI has, for what is not in all of them.
#pragma once

#include <mpi.h>

// Open MPI 5 says that it is MPI 3.1, and has all of 4.0 but large counts.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define IMBREX_MPI_4 1
#else
#define IMBREX_MPI_4 0
#endif
