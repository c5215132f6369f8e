// SPDX-License-Identifier: BSD-3-Clause
// The matrix in outer tiles, of which each belongs to a rank, and these in inner tiles, which the
// threads of a rank compute. Knows nothing of messages and tasks.
#pragma once

#include <cstdint>

namespace smith_waterman {

struct Extent {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// Returns the rank to which an outer tile belongs.
enum class Distribution {
  block,   // each anti-diagonal in as many pieces as there are ranks, from its top
  cyclic,  // a column of tiles to each rank in turn, so that a diagonal's tiles go round
};

// The data that an outer tile leaves to its neighbours below, to the right, and below and right.
enum Part : std::uint8_t { last_row, last_column, last_cell, parts };

// The tile that reads a part stands so many rows below, and columns to the right.
struct Edge {
  Part part;
  int down;
  int right;
};
inline constexpr Edge edges[] = {{last_row, 1, 0}, {last_column, 0, 1}, {last_cell, 1, 1}};

struct Tiling {
  Extent whole;
  Extent outer;  // the last of a row and of a column may be smaller; so of the inner
  Extent inner;
  int ranks = 1;
  Distribution distribution = Distribution::block;

  [[nodiscard]] int down() const noexcept { return pieces(whole.rows, outer.rows); }
  [[nodiscard]] int across() const noexcept { return pieces(whole.columns, outer.columns); }
  [[nodiscard]] int diagonals() const noexcept { return down() + across() - 1; }
  // The rows of the outer tiles of a diagonal, i + j = d: from first to last.
  [[nodiscard]] int first_of(int diagonal) const noexcept {
    return diagonal < across() ? 0 : diagonal - across() + 1;
  }
  [[nodiscard]] int last_of(int diagonal) const noexcept {
    return diagonal < down() ? diagonal : down() - 1;
  }
  [[nodiscard]] Extent extent(int i, int j) const noexcept {
    return {part(whole.rows, outer.rows, i), part(whole.columns, outer.columns, j)};
  }
  [[nodiscard]] std::int64_t cells(int i, int j, Part part) const noexcept {
    if (part == last_cell) return 1;
    return part == last_row ? extent(i, j).columns : extent(i, j).rows;
  }
  [[nodiscard]] int home(int i, int j) const noexcept {
    if (distribution == Distribution::cyclic) return j % ranks;
    const int first = first_of(i + j);
    const std::int64_t count = last_of(i + j) - first + 1;
    return static_cast<int>((i - first) * static_cast<std::int64_t>(ranks) / count);
  }

  [[nodiscard]] static int pieces(std::int64_t length, std::int64_t piece) noexcept {
    return static_cast<int>((length + piece - 1) / piece);
  }
  // The length of piece `number`.
  [[nodiscard]] static std::int64_t part(std::int64_t length, std::int64_t piece,
                                         int number) noexcept {
    const std::int64_t left = length - piece * number;
    return left < piece ? left : piece;
  }
};

}  // namespace smith_waterman
