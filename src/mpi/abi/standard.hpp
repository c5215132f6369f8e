// SPDX-License-Identifier: BSD-3-Clause
// The version of the standard of this MPI, for features that not all versions have.
#pragma once

#include <mpi.h>

// Open MPI 5 reports MPI 3.1, and has all of 4.0 except large counts.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define IMBREX_MPI_4 1
#else
#define IMBREX_MPI_4 0
#endif
