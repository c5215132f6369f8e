// SPDX-License-Identifier: BSD-3-Clause
// Whether a communicator may go. Used by whoever carries out a call that frees one.
#pragma once

#include <mpi.h>

namespace imbrex::mpi::check {

// MPI_SUCCESS if no task waits on `comm`. Else it has said who does and called the error handler,
// and `call` must return this code.
[[nodiscard]] int refuse_to_free(const char* call, MPI_Comm comm);

}  // namespace imbrex::mpi::check
