// SPDX-License-Identifier: BSD-3-Clause
// fake_mpi: MPI_name for each PMPI_name, weak, so that a tool may replace it; and the functions
// that are not simulated.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

extern "C" {

#define FAKE_MPI(name, parameters, arguments) \
  [[gnu::weak]] int MPI_##name parameters { return PMPI_##name arguments; }
#include "functions.def"

#define FAKE_MPI_MISSING(name)                                        \
  int PMPI_##name(...) {                                              \
    std::fprintf(stderr, "fake_mpi: MPI_" #name " is not simulated\n"); \
    std::abort();                                                     \
  }
#include "unsimulated.def"

}  // extern "C"
