// SPDX-License-Identifier: BSD-3-Clause
// The parts of this library that have a beginning and an end, in one table: what MPI_Init begins
// and MPI_Finalize ends, and in which order.
#pragma once

#include <string>

#include "mpi/life/agreement.hpp"

namespace imbrex::mpi {

// In MPI_Init. Collective.
void begin_parts(const Agreement& all);

// In MPI_Finalize, where tasks may run still: waits for them, and for what they have begun.
// Collective. Without a runtime only what other ranks wait for.
void finish_parts();

// Then nothing runs any more. Collective.
void end_parts();

// A line for each operation that waits in MPI; empty if there is none.
[[nodiscard]] std::string describe_open();

}  // namespace imbrex::mpi
