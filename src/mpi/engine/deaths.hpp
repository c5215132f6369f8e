// SPDX-License-Identifier: BSD-3-Clause
// The reports of ranks to `imbrex run` (tools/imbrex_deaths.py) about their ends. The command asks
// for them by IMBREX_TELL_PROCESS=1, which is no option: no user sets it. Launchers do not always
// name the rank that has ended first: MPICH's names a process; Open MPI 4.1 loses the text of
// MPI_Abort, and Open MPI 5 exit codes after MPI_Finalize.
#pragma once

namespace imbrex::mpi {

// Reports the process of this rank, and arranges the report of its exit code. Called in MPI_Init.
void report_process();

// Called before PMPI_Abort, by any thread.
void report_abort(int code) noexcept;

}  // namespace imbrex::mpi
