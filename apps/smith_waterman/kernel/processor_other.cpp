// SPDX-License-Identifier: BSD-3-Clause
#include "block.hpp"
#include "processor.hpp"

namespace smith_waterman {

extern const ComputeBlock compute_block_v3;
const ComputeBlock compute_block_v3 = nullptr;

bool processor_has_v3() noexcept { return false; }

}  // namespace smith_waterman
