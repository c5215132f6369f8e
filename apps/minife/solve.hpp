// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients without preconditioner over sub-blocks, in the ways that are compared. An
// iteration has one exchange of the layer around the brick, and two sums over ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../sparse/runner.hpp"
#include "algorithm.hpp"

namespace minife {

inline const std::vector<std::string> kernel_names{"matvec", "waxpby", "dot"};

using sparse::Outcome;
using sparse::Variant;

// `times` of all points of a rank, on one worker; empty: kernels compute. Kernels that sleep leave
// all vectors as they are.
struct Equations {
  const sparse::Brick& brick;
  const System& system;
  tiled::KernelTimes times;
};

// Exactly `iterations` of them: those after the end, where the residual is below the precision of
// a double, are carried out and change nothing; those of the outcome are those before. Its residual
// is the norm of r. Collective over `communicator`. Suspends. All variants give the same bits.
[[nodiscard]] Outcome solve(const Equations& equations, MPI_Comm communicator, Variant variant,
                            int iterations, Vectors& vectors);

// On `points` points in each dimension, of a rank alone, in proportion for `of` points: seconds of
// each of kernel_names by the calling thread. Suspends.
[[nodiscard]] tiled::KernelTimes measure_kernels(int points, std::int64_t of);

}  // namespace minife
