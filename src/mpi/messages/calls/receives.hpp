// SPDX-License-Identifier: BSD-3-Clause
// The calls of MPI that this folder carries out, for use by one another: `name` is the program's
// call.
#pragma once

#include <mpi.h>

#include <functional>

#include "mpi/messages/matching/receive.hpp"

namespace imbrex::mpi::messages {

// The communicator in which a receive with these arguments waits. Null: MPI's own call returns at
// once, with an error or for MPI_PROC_NULL.
[[nodiscard]] Communicator* place_of(const Arguments& arguments);

// The call, for checks and reports of the receive.
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

// These take such a request, a request of MPI, and null and inactive ones.
[[nodiscard]] int wait(const Call& call, MPI_Request* request, MPI_Status* status);
[[nodiscard]] int cancel(MPI_Request* request);

// Asks to cancel an operation whose handle the program no longer has: the receive or send whose
// listener `is_listener` recognises, else each request of MPI's that `is_operation` recognises. Too
// late is no error. Takes time in proportion to the number of open operations. Both functions are
// called with a lock held, so they only look.
void cancel_where(const std::function<bool(const Listener&)>& is_listener,
                  const std::function<bool(const Operation&)>& is_operation);

// `call` with the communicator of the request, if the call names none, MPI does not call the error
// handler itself, and the request is a known receive of MPI.
[[nodiscard]] Call naming_communicator(const Call& call, MPI_Request request) noexcept;

}  // namespace imbrex::mpi::messages
