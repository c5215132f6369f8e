// SPDX-License-Identifier: BSD-3-Clause
// Whether a communicator may be freed. Used by the calls that free one.
#pragma once

#include <mpi.h>

namespace imbrex::mpi::check {

// MPI_SUCCESS if no task waits on `comm`. Otherwise it has reported the waiting task and called the
// error handler, and `call` must return this code.
[[nodiscard]] int refuse_to_free(const char* call, MPI_Comm comm);

}  // namespace imbrex::mpi::check
