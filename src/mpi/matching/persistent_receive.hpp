// SPDX-License-Identifier: BSD-3-Clause
// A receive that a persistent request stands for.
#pragma once

#include <mpi.h>

#include "mpi/matching/receive.hpp"

namespace imbrex::mpi::receive {

struct PersistentReceive {
  Arguments arguments;  // its type is a copy if `owns_type`
  bool owns_type = false;
  Communicator& communicator;
  Receive* active = nullptr;  // by the calls that use the request; null: MPI's own, or not started
  bool posted = false;        // the same: MPI's own, and counted
};
// As MPI_Request_free of its request: a receive that is active goes on.
int free_persistent(PersistentReceive& gone, MPI_Request* request) noexcept;

}  // namespace imbrex::mpi::receive
