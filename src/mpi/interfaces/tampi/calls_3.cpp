// SPDX-License-Identifier: BSD-3-Clause
// The calls of calls.cpp once more, with the request argument of TAMPI 1 to 3. Their symbols have
// names of their own, which TAMPI.h declares.
#define IMBREX_TAMPI_3
#include "mpi/interfaces/tampi/calls.cpp"
