// SPDX-License-Identifier: BSD-3-Clause
// Which tile of a matrix lies where: tiles are dealt block-cyclically over a grid of ranks. Knows
// nothing of tasks and MPI.
#pragma once

#include <cstdint>

namespace tiled {

struct Grid {
  int rows = 1;
  int columns = 1;
};

// The tiles of the matrix: all with j <= i, or all.
enum class Shape : std::uint8_t { lower, full };

// The place of each tile. Tile (i, j) belongs to row i % rows, column j % columns of the grid.
// Tiles are square but those of the last row and column, which hold the rest.
struct Layout {
  std::int64_t n;
  int tile;
  Grid grid;
  Shape shape = Shape::lower;

  [[nodiscard]] int tiles() const noexcept { return static_cast<int>((n + tile - 1) / tile); }
  [[nodiscard]] std::int64_t first(int i) const noexcept { return std::int64_t{i} * tile; }
  [[nodiscard]] int extent(int i) const noexcept {
    return i + 1 < tiles() ? tile : static_cast<int>(n - first(i));
  }
  [[nodiscard]] int owner(int i, int j) const noexcept {
    return i % grid.rows * grid.columns + j % grid.columns;
  }
  // The position of tile (i, j) among all, row by row; that of (tiles(), 0) is their number.
  [[nodiscard]] std::int64_t position(int i, int j) const noexcept {
    return (shape == Shape::lower ? std::int64_t{i} * (i + 1) / 2 : std::int64_t{i} * tiles()) + j;
  }
};

}  // namespace tiled
