// SPDX-License-Identifier: BSD-3-Clause
// A block: a tile that is small enough for scores of 16 bits, relative to its corner. Computed by
// lanes.hpp, which is compiled for several processors.
#pragma once

#include "kernel.hpp"

namespace smith_waterman {

constexpr int block_side_max = 1024;

// Members have the meaning of those of Tile, but the corner is only read.
struct Block {
  const Letter* a = nullptr;
  int rows = 0;  // at most block_side_max, as are the columns
  const Letter* b = nullptr;
  int columns = 0;
  Score* column = nullptr;
  Score* row = nullptr;
  Score corner = 0;
};

// Returns a bound: not below the block's largest score, not above the largest of the block, of the
// column to its left, and of 0 if local. Without `want_bound` it means nothing.
using ComputeBlock = Score (*)(const Scoring& scoring, const Block& block, bool want_bound);

Score compute_block_portably(const Scoring& scoring, const Block& block, bool want_bound) noexcept;
// The version for x86-64-v3; null if the program is for another processor.
extern const ComputeBlock compute_block_v3;

}  // namespace smith_waterman
