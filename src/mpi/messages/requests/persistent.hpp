// SPDX-License-Identifier: BSD-3-Clause
// A receive, or the sending of a long message, that a persistent request stands for.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi/messages/matching/receive.hpp"

namespace imbrex::mpi::messages {

// How a message is sent: as by MPI_Send, MPI_Ssend, or MPI_Rsend.
enum class SendMode : std::uint8_t { standard, synchronous, ready };

struct Persistent {
  // Its type is a copy if `owns_type`. Of a send: the buffer is only read, and `wanted` is whom it
  // goes to, with which tag.
  Arguments arguments;
  bool owns_type = false;
  Communicator& communicator;
  Substitute* active = nullptr;  // by the calls that use the request; null: MPI's, or not started
  bool posted = false;           // the same: MPI's own, and counted
  bool sends = false;
  SendMode mode = SendMode::standard;
};

}  // namespace imbrex::mpi::messages
