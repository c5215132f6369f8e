// SPDX-License-Identifier: BSD-3-Clause
// One tile of the matrix of an alignment, from the cells around it. Everything here may be called
// by any number of tasks and threads at once. Knows nothing of how tiles follow each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace smith_waterman {

using Score = std::int32_t;

// A base: 0 A, 1 G, 2 C, 3 T; two that differ in the lowest bit alone are a transition.
using Letter = std::uint8_t;

// The scores of a pair of letters and of a gap. Opening a gap costs nothing, so that a cell needs
// only the scores of its neighbours.
struct Scoring {
  int match = 2;
  int transition = -2;
  int transversion = -4;
  int gap = -1;       // for each letter that stands against none
  bool local = true;  // no cell is below 0, edges are 0; else whole sequences are aligned

  [[nodiscard]] int of(Letter a, Letter b) const noexcept {
    const int differs = a ^ b;
    return differs == 0 ? match : differs == 1 ? transition : transversion;
  }
};

// Empty if the kernels can compute with it; else what is wrong.
// The bounds are those of the argument at `block_side` in kernel.cpp.
[[nodiscard]] const char* what_is_wrong(const Scoring& scoring) noexcept;

// Cells (i, j), i < rows, j < columns, by a[i] and b[j]. The three arrays of scores hold what is
// around the tile before, and its last cells after: so what the tile below, and the one to the
// right, need stands where they look for it.
// REQUIRES: the cells around it are those of some alignment with the same scoring (the kernel
// computes with small differences, which arbitrary numbers would exceed).
struct Tile {
  const Letter* a = nullptr;
  int rows = 0;
  const Letter* b = nullptr;
  int columns = 0;
  Score* column = nullptr;  // `rows` cells: before, those to the left; after, the last column
  Score* row = nullptr;     // `columns` cells: before, those above; after, the last row
  Score* corner = nullptr;  // before, the cell above and left; after, that of the tile to the right
};

// A cell's place in the whole matrix, from 0, and its score.
struct Cell {
  Score score = 0;
  std::int64_t row = -1;
  std::int64_t column = -1;

  // The result is the first cell with the largest score: in the first row that has one, the first
  // column.
  [[nodiscard]] bool precedes(const Cell& other) const noexcept {
    if (score != other.score) return score > other.score;
    return row != other.row ? row < other.row : column < other.column;
  }
};

// The first of the cells with the largest score, of tiles that come in any order.
// Thread safety: all may be called at once.
class Largest {
 public:
  // Returns whether a cell with a score of at most `bound`, in this row or below, may come first. A
  // cell with a score of 0 is no result, since nothing is aligned then.
  [[nodiscard]] bool may_take(Score bound, std::int64_t first_row) const {
    // Relaxed: a score that was larger an instant later costs a search for nothing.
    if (bound < score_.load(std::memory_order_relaxed)) return false;
    const std::lock_guard held(lock_);
    return bound > first_.score || (bound == first_.score && first_row <= first_.row);
  }
  void offer(const Cell& cell) {
    const std::lock_guard held(lock_);
    if (cell.score <= 0 || !cell.precedes(first_)) return;
    first_ = cell;
    score_.store(cell.score, std::memory_order_relaxed);  // only ever compared, as above
  }
  [[nodiscard]] Cell first() const {
    const std::lock_guard held(lock_);
    return first_;
  }

 private:
  mutable std::mutex lock_;         // of first_
  std::atomic<Score> score_ = 0;    // that of first_; written under the lock
  Cell first_;
};

// The position of a tile in the whole matrix.
struct Origin {
  std::int64_t row = 0;
  std::int64_t column = 0;
};

// Computes the tile with the widest vectors that the processor has; `largest` may be null.
void compute(const Scoring& scoring, const Tile& tile, Origin origin, Largest* largest);

// Computes a tile by the definition, cell by cell; tests compare compute() with it. Returns the
// first cell of those with the largest score, by its place in the tile; at least one cell is there.
Cell compute_plainly(const Scoring& scoring, const Tile& tile) noexcept;

// The version that compute() takes: "256 bits (AVX2)" or "portable".
[[nodiscard]] const char* kernel_name() noexcept;

}  // namespace smith_waterman
