// SPDX-License-Identifier: BSD-3-Clause
// What is done with a factor: check, solve. Simple code on tiles with replicated vectors: its
// cost is of order n^2 and is not part of what is measured. All collective, called by main.
#pragma once

#include <cstdint>

#include "../replicated.hpp"
#include "order.hpp"

namespace cholesky {

// ||A - L L^T|| / (n ||A|| eps) in Frobenius norms, eps = 2^-53. Up to `exact_limit` rows the
// numerator is exact (all unit vectors are multiplied); beyond it is estimated from `probes`
// vectors of random signs, since for such x the mean of ||R x||^2 is ||R||^2 (Hutchinson 1990).
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
