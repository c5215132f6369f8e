// SPDX-License-Identifier: BSD-3-Clause
// The Matern covariance between places on the Earth.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../../source.hpp"
#include "locations.hpp"

namespace cholesky {

using namespace tiled;

enum class Distance {
  chordal,      // through the Earth: every Matern model stays positive definite
  great_circle  // along its surface: only smoothness 1/2 does (Gneiting 2013)
};

// Lengths in km, sill and nugget in squares of the value's unit.
struct CovarianceModel {
  double smoothness;  // 0.5, 1.5 or 2.5: those with a closed form
  double range_km;
  double sill;    // of the smooth part
  double nugget;  // of what differs from place to place, and of errors
  Distance distance;
};

// Empty, or what is wrong with the model.
[[nodiscard]] std::string check(const CovarianceModel& model);

// Thread safety: const members, any thread.
class Covariance {
 public:
  // REQUIRES: check(model) is empty.
  Covariance(const CovarianceModel& model, const std::vector<Site>& sites);

  // The covariance of the smooth part: sill at distance 0, without the nugget.
  [[nodiscard]] double between(std::size_t i, std::size_t j) const noexcept;
  [[nodiscard]] double distance_km(std::size_t i, std::size_t j) const noexcept;

 private:
  struct Point {
    double x, y, z;  // on the unit sphere
  };
  CovarianceModel model_;
  std::vector<Point> points_;
};

// The covariance matrix, with nugget, of the places whose positions among those of `covariance`
// stand in `chosen`. Keeps references to both.
class CovarianceSource : public Source {
 public:
  CovarianceSource(const Covariance& covariance, const std::vector<std::size_t>& chosen,
                   double nugget)
      : covariance_(covariance), chosen_(chosen), nugget_(nugget) {}
  void fill(const Block& block, double* entries) const override;

 private:
  const Covariance& covariance_;
  const std::vector<std::size_t>& chosen_;
  double nugget_;
};

}  // namespace cholesky
