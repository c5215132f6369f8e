// SPDX-License-Identifier: BSD-3-Clause
// Filling a matrix, and vectors that every rank has: for what is done before and after a
// factorisation, whose cost is of order n^2 and is not part of what is measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels.hpp"
#include "matrix.hpp"
#include "source.hpp"
#include "team.hpp"

namespace tiled {

// Vectors of length n, the same on every rank, one after another.
struct MultiVector {
  MultiVector(std::int64_t length, int number)
      : n(length), count(number), entries(static_cast<std::size_t>(length) * number, 0.0) {}
  [[nodiscard]] double* column(int c) noexcept { return entries.data() + n * c; }
  [[nodiscard]] const double* column(int c) const noexcept { return entries.data() + n * c; }

  std::int64_t n;
  int count;
  std::vector<double> entries;
};

// The error of a result, in multiples of the error that rounding explains, and how it is found.
struct Residual {
  double value;
  std::string method;
};

[[nodiscard]] MultiVector random_signs(std::int64_t n, int count);  // always the same

template <class Visit>
void for_each_tile_of_mine(const TiledMatrix& matrix, Visit&& visit) {
  const Layout& layout = matrix.layout();
  for (int j = 0; j < layout.tiles(); ++j) {
    for (int i = layout.shape == Shape::lower ? j : 0; i < layout.tiles(); ++i) {
      if (matrix.is_mine(i, j)) visit(i, j);
    }
  }
}

// Fills in parallel; of a lower triangle also zeros above the diagonal of a diagonal tile. Called
// by main.
void fill(TiledMatrix& matrix, const Source& source);

[[nodiscard]] Block block_of(const Layout& layout, int i, int j) noexcept;
[[nodiscard]] ConstTile tile_of(const TiledMatrix& matrix, int i, int j) noexcept;
// Rows of tile row i of all vectors.
[[nodiscard]] Vectors rows_of(const Layout& layout, int i, MultiVector& x) noexcept;

// Collective.
void sum_over_ranks(const Team& team, MultiVector& x);
[[nodiscard]] double sum_over_ranks(const Team& team, double mine);

}  // namespace tiled
