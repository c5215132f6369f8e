// SPDX-License-Identifier: BSD-3-Clause
// The start of what calls/decompose.hpp decides. Used by world.cpp.
#pragma once

#include <cstdint>

#include "mpi/calls/decompose.hpp"

namespace imbrex::mpi::partial {

[[nodiscard]] std::uint64_t decomposed_calls() noexcept;

// In MPI_Init, once all ranks have the same setting.
void start_decomposing(const decompose::Setting& setting);

}  // namespace imbrex::mpi::partial
