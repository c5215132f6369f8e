// SPDX-License-Identifier: BSD-3-Clause
// The rows of a sparse matrix that a sub-block owns, in compressed form, and what one does with
// vectors over a sub-block. All are pure loops; tasks over sub-blocks call them.
#pragma once

#include <vector>

#include "brick.hpp"

namespace sparse {

// Row r is the r-th point of the block, x fastest; columns are places in a vector, ascending.
struct Rows {
  std::vector<int> begin;  // of each row, and the end of the last one
  std::vector<int> column;
  std::vector<double> value;
};

// The pattern in which each point depends on itself and on all that are around it in the whole
// grid; all values are 0. REQUIRES: 27 entries a row fit into an int.
[[nodiscard]] Rows pattern_of(const Brick& brick, const Box& block);

// product = A vector, on the block's points.
void multiply(const Brick& brick, const Box& block, const Rows& rows,
              const std::vector<double>& vector, std::vector<double>& product) noexcept;
// result = a + factor * b, which may be one of the two.
void add(const Brick& brick, const Box& block, const std::vector<double>& a, double factor,
         const std::vector<double>& b, std::vector<double>& result) noexcept;
[[nodiscard]] double dot(const Brick& brick, const Box& block, const std::vector<double>& a,
                         const std::vector<double>& b) noexcept;

}  // namespace sparse
