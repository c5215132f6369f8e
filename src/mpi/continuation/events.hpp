// SPDX-License-Identifier: BSD-3-Clause
// Events of messages and sends (imbrex/events.h), as the communicator tells of them.
#pragma once

#include <mpi.h>

#include "engine.hpp"

namespace imbrex::mpi {

// A message has arrived on `comm`; `request` is its receive's handle, or null. The program hears of
// it when the round is over: the caller holds locks.
void note_incoming(Round& round, MPI_Comm comm, const MPI_Status& status, MPI_Request request);

}  // namespace imbrex::mpi
