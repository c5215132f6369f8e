// SPDX-License-Identifier: BSD-3-Clause
// The vector kernel with 256-bit vectors: compiled with -march=x86-64-v3 by CMakeLists.txt.
#include "lanes.hpp"

namespace smith_waterman {

extern const ComputeBlock compute_block_v3;
const ComputeBlock compute_block_v3 = &compute_by_lanes;

}  // namespace smith_waterman
