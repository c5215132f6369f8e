// SPDX-License-Identifier: BSD-3-Clause
// The calls of MPI that this folder carries out, for one another: `name` is the call that the
// program made.
#pragma once

#include <mpi.h>

#include "mpi/messages/matching/receive.hpp"

namespace imbrex::mpi::messages {

// The communicator in which a receive with these arguments waits. Null: MPI's own call answers at
// once, by an error or for MPI_PROC_NULL.
[[nodiscard]] Communicator* place_of(const Arguments& arguments);

// What checks and reports are told of the receive.
[[nodiscard]] inline Call call_of(const char* const name, const Arguments& arguments) noexcept {
  return {.name = name,
          .comm = arguments.comm,
          .peer = arguments.wanted.source,
          .tag = arguments.wanted.tag,
          .count = arguments.count,
          .type = arguments.type,
          .kind = Kind::receive};
}

// Suspends in a task.
[[nodiscard]] int recv(const char* name, const Arguments& arguments, MPI_Status* status);
// The request may stand for a receive that imbrex matches.
[[nodiscard]] int irecv(const Call& call, const Arguments& arguments, MPI_Request* request);

// Tells a trace that `request` receives from `comm`, unless it stands for a receive that imbrex
// matches, which tells of itself.
void note_receive(MPI_Request request, MPI_Comm comm);

// These take such a request, MPI's own, and null and inactive ones.
[[nodiscard]] int wait(const Call& call, MPI_Request* request, MPI_Status* status);
[[nodiscard]] int cancel(MPI_Request* request);

// `call` with the communicator of the request, if the call names none, MPI does not call the error
// handler itself, and the request is a receive of MPI's own that is known here.
[[nodiscard]] Call naming_communicator(const Call& call, MPI_Request request) noexcept;

}  // namespace imbrex::mpi::messages
