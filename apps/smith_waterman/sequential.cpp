// SPDX-License-Identifier: BSD-3-Clause
#include "variants.hpp"

namespace smith_waterman {

// Outer tiles row by row: of a row's tiles each leaves its last column to the next, and its last
// row to the one below.
Score run_sequential(const Problem& problem, MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank != 0) return 0;
  const Tiling& tiling = problem.tiling;
  std::vector<std::vector<Score>> above(static_cast<std::size_t>(tiling.across()));
  Score last = 0;
  for (int i = 0; i < tiling.down(); ++i) {
    std::vector<Score> left;
    Score corner = 0;
    for (int j = 0; j < tiling.across(); ++j) {
      std::vector<Score>& over = above[static_cast<std::size_t>(j)];
      OuterTile tile(problem, i, j);
      if (j > 0) tile.column = std::move(left);
      if (i > 0) tile.row = std::move(over);
      if (i > 0 && j > 0) tile.corner = corner;
      corner = tile.row.back();  // of the tile to the right
      tile.begin();
      for (int k = 0; k < tile.down(); ++k) {
        for (int l = 0; l < tile.across(); ++l) tile.compute(k, l);
      }
      left = std::move(tile.column);
      over = std::move(tile.row);
      last = over.back();
    }
  }
  return last;
}

}  // namespace smith_waterman
