// SPDX-License-Identifier: BSD-3-Clause
// What is done with a factor: fill, check, solve. Simple code on tiles with replicated vectors: its
// cost is of order n^2 and is not part of what is measured. All collective, called by main.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "matrix.hpp"
#include "source.hpp"
#include "team.hpp"

namespace cholesky {

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

// The lower triangle of the matrix, in parallel; above the diagonal of a diagonal tile, zeros.
void fill(TiledMatrix& matrix, const Source& source);

// ||A - L L^T|| / (n ||A|| eps) in Frobenius norms, eps = 2^-53. Up to `exact_limit` rows the
// numerator is exact (all unit vectors are multiplied); beyond it is estimated from `probes`
// vectors of random signs, since for such x the mean of ||R x||^2 is ||R||^2 (Hutchinson 1990).
struct Residual {
  double value;
  std::string method;
};
struct ResidualOptions {
  std::int64_t exact_limit = 1024;
  int probes = 16;
};
[[nodiscard]] Residual residual(const Team& team, const TiledMatrix& factor, const Source& source,
                                const ResidualOptions& options);

// The logarithm of det A = (det L)^2.
[[nodiscard]] double log_determinant(const Team& team, const TiledMatrix& factor);

// b := L^-1 b.
void solve_forward(const Team& team, const TiledMatrix& factor, MultiVector& b);

}  // namespace cholesky
