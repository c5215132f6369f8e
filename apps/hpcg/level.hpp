// SPDX-License-Identifier: BSD-3-Clause
// The grids of HPCG: a level has the operator of 27 points on a rank's brick, cut into sub-blocks,
// and the kernels of multigrid on a sub-block. Knows no message and no task.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../sparse/brick.hpp"
#include "../sparse/rows.hpp"

namespace hpcg {

constexpr int level_count = 4;
constexpr int divisor = 8;  // of a rank's points in each dimension: three times halved

// The matrix rows of a sub-block.
struct Operator {
  sparse::Rows rows;                   // 26 on the diagonal, -1 beside it
  std::vector<int> diagonal;           // of each row: where it stands in rows.value
  std::vector<std::uint32_t> outside;  // of each row: bit k says that entry k is not of this block
};

// A point (x, y, z) of a level is the point (2x, 2y, 2z) of the finer one.
// Thread safety: any number of tasks may read it.
struct Level {
  // `with_operator` false: for kernels that sleep, without what they would read.
  Level(const sparse::BrickShape& shape, int rank, bool with_operator);

  [[nodiscard]] std::size_t block_count() const noexcept { return brick.blocks().size(); }

  sparse::Brick brick;
  std::vector<Operator> operators;        // by sub-block
  std::vector<std::vector<int>> finer;    // by sub-block: those of the finer level it injects,
  std::vector<std::vector<int>> coarser;  // and those of the coarser level that inject it
};

// The finest first. REQUIRES: shape.points is a multiple of 8 times shape.ranks.
[[nodiscard]] std::vector<std::unique_ptr<Level>> make_levels(const sparse::BrickShape& shape,
                                                              int rank, bool with_operators);

// The right side whose solution is 1 everywhere; 0 where nothing is owned.
[[nodiscard]] std::vector<double> right_side(const Level& level);

// Multiplies the diagonal, and the right side, by 10^6, in the first nine rows of the whole grid by
// (row + 2) * 10^6: conjugate gradients then need few iterations. `restore_diagonal` ends it.
void exaggerate_diagonal(Level& level, std::vector<double>& right_side);
void restore_diagonal(Level& level);

// One symmetric sweep of Gauss-Seidel: the block's points of `to` from all of `from`, forward and
// then backward. Other blocks and ranks count with their values in `from`, before the sweep: so
// sub-blocks do what as many ranks would do, in any order.
void smooth(const Level& level, std::size_t block, const std::vector<double>& right_side,
            const std::vector<double>& from, std::vector<double>& to) noexcept;
// On a block of the coarser level: the residual right_side - product of the finer one.
void restrict_residual(const Level& fine, const Level& coarse, std::size_t block,
                       const std::vector<double>& right_side, const std::vector<double>& product,
                       std::vector<double>& coarse_side) noexcept;
// On a block of the finer level: adds the correction where the coarser one has points.
void prolong(const Level& fine, const Level& coarse, std::size_t block,
             const std::vector<double>& correction, std::vector<double>& result) noexcept;
// value, on the block's points.
void fill(const Level& level, std::size_t block, double value,
          std::vector<double>& result) noexcept;

// Returns the number of entries of a grid's operator, as a double, since it may be large.
[[nodiscard]] double entries_of(const sparse::Point& points) noexcept;

}  // namespace hpcg
