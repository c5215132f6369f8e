// SPDX-License-Identifier: BSD-3-Clause
// All communicators that are known here.
//
// Thread safety: any thread.
#pragma once

#include <mpi.h>

#include <functional>

#include "mpi/messages/matching/communicator.hpp"

namespace imbrex::mpi::messages {

// The one of `comm`; null if MPI knows no such communicator.
[[nodiscard]] Communicator* communicator_of(MPI_Comm comm);

// The same, and null too if nobody has asked for it before.
[[nodiscard]] Communicator* known_communicator_of(MPI_Comm comm) noexcept;

// Calls visit(communicator) for each that has been asked for and is not freed.
void for_each_communicator(const std::function<void(Communicator&)>& visit);

// In MPI_Finalize: gives back what MPI has given for them.
void end_communicators() noexcept;

}  // namespace imbrex::mpi::messages
