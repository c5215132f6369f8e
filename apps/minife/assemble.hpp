// SPDX-License-Identifier: BSD-3-Clause
// The linear system of steady conduction in the unit cube, cut into bricks of elements: a rank's
// part of it, assembled sub-block by sub-block.
#pragma once

#include <vector>

#include "../sparse/brick.hpp"
#include "../sparse/rows.hpp"

namespace minife {

struct Problem {
  sparse::Point elements;  // of all ranks
  double source = 1;       // of heat, everywhere
};

// The nodes are one more than the elements in each dimension; a rank owns `n` of them in each, and
// the last one n + 1.
[[nodiscard]] inline sparse::BrickShape nodes_of(sparse::BrickShape elements) noexcept {
  for (int& points : elements.points) ++points;
  return elements;
}

struct System {
  std::vector<sparse::Rows> rows;  // by sub-block
  std::vector<double> load;        // the right side; 0 where nothing is owned
};

// One task for each sub-block, which sums the elements that touch its nodes; elements between
// sub-blocks are integrated by each of them, so that none writes into another. Boundary nodes are
// held at 1 where x = 1, else at 0: their rows are those of the identity, and their columns are
// moved to the right side, which keeps the matrix symmetric. Suspends.
[[nodiscard]] System assemble(const Problem& problem, const sparse::Brick& brick);

// The value at (1/2, 1/2, 1/2), interpolated where that is no node. Collective over
// MPI_COMM_WORLD.
[[nodiscard]] double value_in_the_middle(const Problem& problem, const sparse::Brick& brick,
                                         const std::vector<double>& vector);

}  // namespace minife
