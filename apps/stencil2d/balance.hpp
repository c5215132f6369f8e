// SPDX-License-Identifier: BSD-3-Clause
// Which rank has which block. Blocks lie on a Hilbert curve, which is cut into a piece for each
// rank, so that the blocks of a rank are near each other. Pure: equal arguments give equal answers
// on every rank. Knows no tasks and no MPI.
#pragma once

#include <cstdint>
#include <vector>

#include "field.hpp"

namespace stencil2d {

// The blocks of a square of `blocks` x `blocks`, numbered row by row, in the order of the curve.
[[nodiscard]] std::vector<int> curve(int blocks);

// The rank of each block, such that the largest sum of weights of a rank is the least that cuts of
// the curve allow. Weights are not negative; if all are zero, ranks get equal numbers of blocks.
[[nodiscard]] std::vector<int> distribute(const std::vector<int>& curve,
                                          std::vector<std::int64_t> weights, int ranks);

// The rank of each block of a problem if all blocks weigh 1.
[[nodiscard]] std::vector<int> distribute_evenly(const Problem& problem, int ranks);

// The largest sum of weights of a rank over the mean of all ranks; 1 if all weights are zero.
[[nodiscard]] double imbalance(const std::vector<int>& owners,
                               const std::vector<std::int64_t>& weights, int ranks);

}  // namespace stencil2d
