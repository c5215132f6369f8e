// SPDX-License-Identifier: BSD-3-Clause
// What the program's handles stand for, and how the operations behind them end. Used by all calls
// that take requests.
//
// Thread safety: any thread; one handle, one thread at a time, as in MPI.
#pragma once

#include <mpi.h>

#include "mpi/messages/matching/substitute.hpp"
#include "mpi/messages/requests/persistent.hpp"

namespace imbrex::mpi::messages {

// What `request` stands for; null: it is MPI's own.
[[nodiscard]] Substitute* substitute(MPI_Request request) noexcept;
// Takes the result of one that is done. The handle becomes null, or inactive if persistent; the
// operation ends. Returns its code, for which the error handler has been called.
int conclude(Substitute& operation, MPI_Request* request, MPI_Status* status);
// The program has let go of the request, the operation goes on.
void let_go(Substitute& operation) noexcept;
// True if the program has done so. REQUIRES: it cannot complete meanwhile.
[[nodiscard]] bool is_let_go(const Substitute& operation) noexcept;
// As MPI_Request_free of the request of `gone`: what is active goes on.
int free_persistent(Persistent& gone, MPI_Request* request) noexcept;

}  // namespace imbrex::mpi::messages
