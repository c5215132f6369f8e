// SPDX-License-Identifier: BSD-3-Clause
// The tests by which the reference benchmark tells whether a result counts.
#pragma once

#include <vector>

#include "solve.hpp"

namespace hpcg {

constexpr double residual_slack = 1e-6;  // relative, to the residual of the reference
constexpr double residual_floor = 1e-100;  // less counts as this: its square nearly underflows
constexpr double variance_limit = 1e-6;  // of the relative residuals of all runs

// Conjugate gradients on the operator with an exaggerated diagonal, to a residual of 1e-12: it has
// ten distinct values and needs about as many iterations, with multigrid one or two.
struct Convergence {
  int plain = 0;           // iterations, the most of two solutions each
  int preconditioned = 0;
  [[nodiscard]] bool passed() const noexcept { return plain <= 12 && preconditioned <= 2; }
};
[[nodiscard]] Convergence test_convergence(Problem& problem, Variant variant);

// |x'Ay - y'Ax| and |x'My - y'Mx| for x and y at random, relative to the rounding of 2 |x| |A| |y|
// with |A| = 52. The reference takes the squares of the norms of x and y, and so passes more.
struct Symmetry {
  double multiply = 0;
  double cycle = 0;
  [[nodiscard]] bool passed() const noexcept { return multiply <= 1 && cycle <= 1; }
};
[[nodiscard]] Symmetry test_symmetry(const Problem& problem, Variant variant);

[[nodiscard]] double variance_of(const std::vector<double>& values) noexcept;

}  // namespace hpcg
