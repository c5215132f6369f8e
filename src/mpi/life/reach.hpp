// SPDX-License-Identifier: BSD-3-Clause
// Whether the calls of a program reach this library, and whether its launcher knows its MPI.
#pragma once

#include <span>
#include <string>

namespace imbrex::mpi {

// Empty if programs reach this library by `functions`, each a PMPI_X and the MPI_X in its name;
// else the error and the remedy.
[[nodiscard]] std::string describe_bypass(std::span<const char* const> functions);

// The first line of MPI's version text.
[[nodiscard]] std::string name_of_library();

// A launcher of another MPI starts the processes, and each finds itself alone: nothing fails, and
// all of them compute the same.
void warn_of_launcher();

}  // namespace imbrex::mpi
