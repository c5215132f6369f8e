// SPDX-License-Identifier: BSD-3-Clause
// The start of what decompose.hpp decides. Used by init_and_finalize.cpp.
#pragma once

#include <cstdint>

#include "mpi/collectives/blocks/decompose.hpp"

namespace imbrex::mpi::partial {

[[nodiscard]] std::uint64_t decomposed_calls() noexcept;

// In MPI_Init, once all ranks have the same setting.
void start_decomposing(const decompose::Setting& setting);

}  // namespace imbrex::mpi::partial
