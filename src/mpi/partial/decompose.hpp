// SPDX-License-Identifier: BSD-3-Clause
// The option IMBREX_PARTIAL, and its start and end. Used by world.cpp.
#pragma once

#include <cstdint>

namespace imbrex::mpi::partial {

// A number for the option's value, the same for the same. Throws Error for one that is not valid.
[[nodiscard]] int partial_mode();

[[nodiscard]] std::uint64_t decomposed_calls() noexcept;

// In MPI_Init, once all ranks have the same; in MPI_Finalize.
void start_decomposing();
void stop_decomposing() noexcept;

}  // namespace imbrex::mpi::partial
