// SPDX-License-Identifier: BSD-3-Clause
// The preprocessor writes the name of the MPI's binary interface; no compiler reads this file.
// Used by ImbrexMpiAbi.cmake and tools/imbrex_config.py. MPICH's header serves two interfaces: its
// wrapper tells them apart by a definition.
#include <mpi.h>
#if defined(MPI_ABI)
imbrex_abi=abi
#elif defined(OPEN_MPI)
imbrex_abi=openmpi
#elif defined(MPICH)
imbrex_abi=mpich
#elif defined(MPI_ABI_VERSION)
imbrex_abi=abi
#endif
