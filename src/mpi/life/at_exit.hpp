// SPDX-License-Identifier: BSD-3-Clause
// The end of a process without MPI_Finalize.
#pragma once

namespace imbrex::mpi {

// The core calls it at exit(), before it waits for tasks.
void leave_at_exit(int status);

}  // namespace imbrex::mpi
