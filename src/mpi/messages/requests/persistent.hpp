// SPDX-License-Identifier: BSD-3-Clause
// A receive, or the send of a long message, behind a persistent request.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi/messages/matching/receive.hpp"

namespace imbrex::mpi::messages {

// The mode of a send: that of MPI_Send, MPI_Ssend, or MPI_Rsend.
enum class SendMode : std::uint8_t { standard, synchronous, ready };

struct Persistent {
  // The type is a copy if `owns_type`. For a send: the buffer is only read, and `wanted` has the
  // receiver and the tag.
  Arguments arguments;
  bool owns_type = false;
  Communicator& communicator;
  Substitute* active = nullptr;  // set by the calls that use the request; null: MPI's, or not
                                 // started
  bool posted = false;           // set by these calls, too: MPI's own, and counted
  bool sends = false;
  SendMode mode = SendMode::standard;
};

}  // namespace imbrex::mpi::messages
