// SPDX-License-Identifier: BSD-3-Clause
// Gaussian likelihood and prediction (ordinary kriging) from a factored covariance matrix.
#pragma once

#include <cstddef>
#include <vector>

#include "../../matrix.hpp"
#include "../../team.hpp"
#include "covariance.hpp"
#include "locations.hpp"

namespace cholesky {

using namespace tiled;

// Positions among the sites: those that are known, and those that are predicted.
struct Split {
  std::vector<std::size_t> known;
  std::vector<std::size_t> held_out;
};
// Every `every`-th site is held out; none if 0.
[[nodiscard]] Split split(const std::vector<Site>& sites, int every);

struct Kriging {
  double log_likelihood;  // of the known values, at the mean below
  double mean;            // estimated by generalised least squares
  std::size_t held_out;
  double rmse;       // of the predictions at the held-out sites
  double rmse_mean;  // of predicting the mean of the known values everywhere
  double coverage;   // share of held-out values within 1.96 predicted standard deviations
};

// REQUIRES: `factor` is the factor of the covariance matrix of split.known. Collective; the same
// result on every rank.
[[nodiscard]] Kriging krige(const Team& team, const TiledMatrix& factor,
                            const CovarianceModel& model, const std::vector<Site>& sites,
                            const Split& split);

}  // namespace cholesky
