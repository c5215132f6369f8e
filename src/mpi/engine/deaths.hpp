// SPDX-License-Identifier: BSD-3-Clause
// What ranks tell `imbrex run` (tools/imbrex_deaths.py) of themselves. The command asks them by
// IMBREX_TELL_PROCESS=1, which is no option: no user sets it.
// Launchers do not always name the rank that has ended first: MPICH's names a process; Open MPI 4.1
// loses the text of MPI_Abort, and Open MPI 5 exit codes after MPI_Finalize.
#pragma once

namespace imbrex::mpi {

// Tells which process this rank is, and arranges that its exit code is told. Called in MPI_Init.
void tell_process();

// Called before PMPI_Abort, by any thread.
void tell_abort(int code) noexcept;

}  // namespace imbrex::mpi
