// SPDX-License-Identifier: BSD-3-Clause
// The meaning of the program's handles, and the end of the operations behind them. Used by all
// calls that take requests.
//
// Thread safety: any thread; one thread at a time for one handle, as in MPI.
#pragma once

#include <mpi.h>

#include "mpi/messages/matching/substitute.hpp"
#include "mpi/messages/requests/persistent.hpp"

namespace imbrex::mpi::messages {

// The operation behind `request`; null: it is a request of MPI.
[[nodiscard]] Substitute* substitute(MPI_Request request) noexcept;
// Takes the result of a done operation. The handle becomes null, or inactive if persistent; the
// operation ends. Returns its code, for which the error handler has been called.
int conclude(Substitute& operation, MPI_Request* request, MPI_Status* status);
// conclude() that calls no error handler: the call of the program has called one already.
int conclude_quietly(Substitute& operation, MPI_Request* request, MPI_Status* status) noexcept;
// The program gives the request away: the handle becomes null. REQUIRES: Substitute::attend()
// follows.
void give_up(Substitute& operation, MPI_Request& request) noexcept;
// The program has freed the request; the operation goes on.
void let_go(Substitute& operation) noexcept;
// True if the program has freed it. REQUIRES: it cannot complete meanwhile.
[[nodiscard]] bool is_let_go(const Substitute& operation) noexcept;
// MPI_Request_free of the request of `gone`: an active operation goes on.
int free_persistent(Persistent& gone, MPI_Request* request) noexcept;

}  // namespace imbrex::mpi::messages
