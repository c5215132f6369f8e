// SPDX-License-Identifier: BSD-3-Clause
// The calls of calls.cpp once more, with the argument for the request that TAMPI 1 to 3 have. Their
// symbols have names of their own, which TAMPI.h says.
#define IMBREX_TAMPI_3
#include "mpi/interfaces/tampi/calls.cpp"
