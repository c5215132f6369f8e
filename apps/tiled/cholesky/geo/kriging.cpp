// SPDX-License-Identifier: BSD-3-Clause
#include "kriging.hpp"

#include <cmath>
#include <numbers>
#include <numeric>

#include "../solve.hpp"

namespace cholesky {
namespace {

double dot(const MultiVector& vectors, int a, int b) noexcept {
  return std::inner_product(vectors.column(a), vectors.column(a) + vectors.n, vectors.column(b),
                            0.0);
}

// The values, ones, and the covariances of each held-out site with the known ones.
MultiVector right_hand_sides(const Covariance& covariance, const std::vector<Site>& sites,
                             const Split& split) {
  const std::size_t n = split.known.size();
  MultiVector b(static_cast<std::int64_t>(n), static_cast<int>(2 + split.held_out.size()));
  for (std::size_t i = 0; i < n; ++i) {
    b.column(0)[i] = sites[split.known[i]].value;
    b.column(1)[i] = 1.0;
    for (std::size_t t = 0; t < split.held_out.size(); ++t) {
      b.column(static_cast<int>(2 + t))[i] = covariance.between(split.known[i], split.held_out[t]);
    }
  }
  return b;
}

}  // namespace

Split split(const std::vector<Site>& sites, int every) {
  Split result;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const bool out = every > 0 && (i + 1) % static_cast<std::size_t>(every) == 0;
    (out ? result.held_out : result.known).push_back(i);
  }
  return result;
}

// With z = L^-1 b for each right-hand side b, every quadratic form x^T A^-1 y is a product of two
// z, so one forward solve is all that is needed.
Kriging krige(const Team& team, const TiledMatrix& factor, const CovarianceModel& model,
              const std::vector<Site>& sites, const Split& split) {
  const Covariance covariance(model, sites);
  MultiVector z = right_hand_sides(covariance, sites, split);
  solve_forward(team, factor, z);

  const double n = static_cast<double>(split.known.size());
  const double ones = dot(z, 1, 1);
  Kriging result{};
  result.mean = dot(z, 0, 1) / ones;
  for (std::int64_t i = 0; i < z.n; ++i) z.column(0)[i] -= result.mean * z.column(1)[i];
  result.log_likelihood = -0.5 * (dot(z, 0, 0) + log_determinant(team, factor) +
                                  n * std::log(2 * std::numbers::pi));
  double plain_mean = 0;
  for (const std::size_t i : split.known) plain_mean += sites[i].value / n;

  double squares = 0;
  double squares_mean = 0;
  double covered = 0;
  for (std::size_t t = 0; t < split.held_out.size(); ++t) {
    const int column = static_cast<int>(2 + t);
    const double truth = sites[split.held_out[t]].value;
    const double error = result.mean + dot(z, column, 0) - truth;
    const double lack = 1 - dot(z, column, 1);  // for the mean's being estimated too
    const double variance =
        model.sill + model.nugget - dot(z, column, column) + lack * lack / ones;
    squares += error * error;
    squares_mean += (plain_mean - truth) * (plain_mean - truth);
    if (error * error <= 1.96 * 1.96 * variance) covered += 1;
  }
  result.held_out = split.held_out.size();
  if (result.held_out > 0) {
    const double count = static_cast<double>(result.held_out);
    result.rmse = std::sqrt(squares / count);
    result.rmse_mean = std::sqrt(squares_mean / count);
    result.coverage = covered / count;
  }
  return result;
}

}  // namespace cholesky
