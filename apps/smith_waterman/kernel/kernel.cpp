// SPDX-License-Identifier: BSD-3-Clause
#include "kernel.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "block.hpp"
#include "processor.hpp"

namespace smith_waterman {
namespace {

constexpr int score_max = 100;  // of what a pair or a gap counts, and its negative

// How many rows and columns a block may have, so that its scores relative to the corner, and all
// that the kernel computes from them, fit into 16 bits. Induction over the cells shows, with
// D = match - gap, which is more than match and more than -gap:
//   gap <= H(i, j) - H(i, j - 1) <= D, and the same downwards;
//   H(i, j) - H(i - 1, j - 1) <= match <= D.
// The kernel makes a block of side n up to 64 rows higher. From the corner a cell is reached by at
// most 2 n + 64 steps to the right and down, none of which falls by more than D: so no score is
// more than D (2 n + 64) below the corner. It is also reached by at most n + 64 diagonal and other
// steps, none of which rises by more than D. Both are at most 30000 here. A pair of letters adds at
// most 100, or takes as much, before the maximum brings the sum back.
int block_side(const Scoring& scoring) noexcept {
  const int per_step = scoring.match - scoring.gap;
  const int side = (30000 / per_step - 64) / 2;
  return std::min(block_side_max, side);
}

ComputeBlock best_kernel() noexcept {
  return compute_block_v3 != nullptr && processor_has_v3() ? compute_block_v3
                                                           : &compute_block_portably;
}

const ComputeBlock compute_block = best_kernel();

// Computes a block, and looks for its largest cell where that may come first: cell by cell, which
// is slow, but rare, since the largest score grows only so often.
void compute_and_look(const Scoring& scoring, const Block& block, Origin origin,
                      Largest& largest) {
  Score column[block_side_max];
  Score row[block_side_max];
  std::copy_n(block.column, block.rows, column);
  std::copy_n(block.row, block.columns, row);
  const Score bound = compute_block(scoring, block, true);
  if (!largest.may_take(bound, origin.row)) return;
  Score corner = block.corner;
  Cell cell = compute_plainly(scoring, {.a = block.a, .rows = block.rows, .b = block.b,
                                        .columns = block.columns, .column = column, .row = row,
                                        .corner = &corner});
  cell.row += origin.row;
  cell.column += origin.column;
  largest.offer(cell);
}

}  // namespace

const char* what_is_wrong(const Scoring& scoring) noexcept {
  for (const int value :
       {scoring.match, scoring.transition, scoring.transversion, scoring.gap}) {
    if (std::abs(value) > score_max) return "each is at least -100 and at most 100";
  }
  if (scoring.match <= 0) return "a match counts more than 0";
  if (scoring.gap >= 0) return "a gap counts less than 0";
  if (scoring.transversion > 0) return "a transversion counts 0 or less";
  if (scoring.transition > scoring.match || scoring.transversion > scoring.transition) {
    return "a transversion counts no more than a transition, and that no more than a match";
  }
  return "";
}

void compute(const Scoring& scoring, const Tile& tile, Origin origin, Largest* largest) {
  const int side = block_side(scoring);
  Score first_corner = *tile.corner;  // of the blocks of the next rows
  *tile.corner = tile.row[tile.columns - 1];
  for (int i = 0; i < tile.rows; i += side) {
    const int rows = std::min(side, tile.rows - i);
    Score corner = first_corner;
    first_corner = tile.column[i + rows - 1];
    for (int j = 0; j < tile.columns; j += side) {
      const int columns = std::min(side, tile.columns - j);
      const Block block{.a = tile.a + i, .rows = rows, .b = tile.b + j, .columns = columns,
                        .column = tile.column + i, .row = tile.row + j, .corner = corner};
      corner = tile.row[j + columns - 1];
      if (largest == nullptr) {
        (void)compute_block(scoring, block, false);
      } else {
        compute_and_look(scoring, block, {origin.row + i, origin.column + j}, *largest);
      }
    }
  }
}

Cell compute_plainly(const Scoring& scoring, const Tile& tile) noexcept {
  const int zero = scoring.local ? 0 : INT32_MIN;
  Cell first{.score = INT32_MIN};
  Score corner = *tile.corner;
  *tile.corner = tile.row[tile.columns - 1];
  for (int i = 0; i < tile.rows; ++i) {
    Score diagonal = corner;
    Score left = tile.column[i];
    corner = left;
    for (int j = 0; j < tile.columns; ++j) {
      const Score up = tile.row[j];
      Score cell = diagonal + scoring.of(tile.a[i], tile.b[j]);
      cell = std::max({cell, up + scoring.gap, left + scoring.gap, zero});
      if (cell > first.score) first = {.score = cell, .row = i, .column = j};
      tile.row[j] = left = cell;
      diagonal = up;
    }
    tile.column[i] = left;
  }
  return first;
}

const char* kernel_name() noexcept {
  return compute_block == &compute_block_portably ? "portable" : "256 bits (AVX2)";
}

}  // namespace smith_waterman
