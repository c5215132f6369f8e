// SPDX-License-Identifier: BSD-3-Clause
// An outer tile while it is computed: what is around it, and its inner tiles.
#pragma once

#include <vector>

#include "../../harness/progress.hpp"
#include "../kernel/kernel.hpp"
#include "tiling.hpp"

namespace smith_waterman {

// The kernel that computes a tile, or sleeps for the time of the computation.
struct Kernel {
  bool plain = false;  // computes by the definition
  double sleep_s = 0;  // on a whole inner tile; 0: computes
  std::int64_t whole_cells = 0;
};

// All that every version of the program is given.
struct Problem {
  const Letter* a = nullptr;
  const Letter* b = nullptr;
  Scoring scoring;
  Tiling tiling;
  Kernel kernel;
  Largest* largest = nullptr;  // of a local alignment; null if it is global
  apps::Progress* progress = nullptr;
};

// The cells outside of the matrix: left of row `first` and those that follow, or above columns.
void fill_edge(const Scoring& scoring, std::int64_t first, std::vector<Score>& edge);
// Returns the score above and to the left of a tile in the first row or column of tiles; `origin`
// is the tile's first cell.
[[nodiscard]] Score edge_corner(const Scoring& scoring, Extent origin);

// Thread safety: inner tiles that do not depend on each other may be computed at once: one needs
// those above it and to its left before it.
class OuterTile {
 public:
  // Has the edges of the matrix around it if it touches them; the other arrays are to be filled.
  OuterTile(const Problem& problem, int i, int j);

  std::vector<Score> column;  // to the left; after all, its last column
  std::vector<Score> row;     // above; after all, its last row
  Score corner = 0;           // above and left

  // After the arrays are filled, before the first inner tile.
  void begin();
  [[nodiscard]] int down() const noexcept { return Tiling::pieces(extent_.rows, inner_.rows); }
  [[nodiscard]] int across() const noexcept {
    return Tiling::pieces(extent_.columns, inner_.columns);
  }
  void compute(int i, int j);
  // Scores that inner tiles of a row, and of a column, hand on to each other.
  [[nodiscard]] Score* left_of(int i) noexcept { return column.data() + i * inner_.rows; }
  [[nodiscard]] Score* above(int j) noexcept { return row.data() + j * inner_.columns; }

 private:
  const Problem& problem_;
  const Extent extent_;
  const Extent inner_;
  const Extent origin_;         // in the matrix
  std::vector<Score> corners_;  // for each row of inner tiles, that of the next one
};

}  // namespace smith_waterman
