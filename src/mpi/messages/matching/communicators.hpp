// SPDX-License-Identifier: BSD-3-Clause
// All communicators that are known here.
//
// Thread safety: any thread.
#pragma once

#include <mpi.h>

#include <functional>

#include "mpi/messages/matching/communicator.hpp"

namespace imbrex::mpi::messages {

// The object of `comm`; null if MPI knows no such communicator.
[[nodiscard]] Communicator* communicator_of(MPI_Comm comm);

// communicator_of() without making an object: also null if there is none yet.
[[nodiscard]] Communicator* known_communicator_of(MPI_Comm comm) noexcept;

// Calls visit(communicator) for each object whose communicator is not freed.
void for_each_communicator(const std::function<void(Communicator&)>& visit);

// In MPI_Finalize: frees MPI's objects for them.
void end_communicators() noexcept;

}  // namespace imbrex::mpi::messages
