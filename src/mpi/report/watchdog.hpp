// SPDX-License-Identifier: BSD-3-Clause
// The watchdog: reports the waits of every rank when a rank's tasks have waited in MPI for too
// long, or on SIGUSR1. It is a thread of its own, since all workers may be busy, or stuck, when the
// report is needed.
#pragma once

namespace imbrex::mpi::report {

// Called in MPI_Init, before MPI's own: a handler of SIGUSR1 that is there then belongs to the
// program, and stays the only one.
void remember_signal() noexcept;

// Collective over MPI_COMM_WORLD, as is stop(): in MPI_Init and MPI_Finalize.
void start_watchdog();
void stop_watchdog();

}  // namespace imbrex::mpi::report
