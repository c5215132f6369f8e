// SPDX-License-Identifier: BSD-3-Clause
#include "covariance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cholesky {
namespace {

constexpr double earth_radius_km = 6371.0088;  // mean radius of WGS 84

}  // namespace

std::string check(const CovarianceModel& model) {
  if (model.smoothness != 0.5 && model.smoothness != 1.5 && model.smoothness != 2.5) {
    return fmt::format("--smoothness {}: valid are 0.5, 1.5 and 2.5", model.smoothness);
  }
  if (!(model.range_km > 0) || !std::isfinite(model.range_km)) {
    return fmt::format("--range {}: must be a positive number of km", model.range_km);
  }
  if (!(model.sill > 0) || !std::isfinite(model.sill)) {
    return fmt::format("--sill {}: must be positive", model.sill);
  }
  if (!(model.nugget >= 0) || !std::isfinite(model.nugget)) {
    return fmt::format("--nugget {}: must not be negative", model.nugget);
  }
  if (model.distance == Distance::great_circle && model.smoothness > 0.5) {
    return fmt::format("--distance great-circle with --smoothness {} is no covariance on a sphere; "
                       "take --distance chordal, or --smoothness 0.5", model.smoothness);
  }
  return "";
}

Covariance::Covariance(const CovarianceModel& model, const std::vector<Site>& sites)
    : model_(model) {
  constexpr double radians = std::numbers::pi / 180;
  for (const Site& site : sites) {
    const double latitude = site.latitude * radians;
    const double longitude = site.longitude * radians;
    points_.push_back({std::cos(latitude) * std::cos(longitude),
                       std::cos(latitude) * std::sin(longitude), std::sin(latitude)});
  }
}

double Covariance::distance_km(std::size_t i, std::size_t j) const noexcept {
  const Point& a = points_[i];
  const Point& b = points_[j];
  const double x = a.x - b.x;
  const double y = a.y - b.y;
  const double z = a.z - b.z;
  const double chord = std::sqrt(x * x + y * y + z * z);
  if (model_.distance == Distance::chordal) return earth_radius_km * chord;
  return earth_radius_km * 2 * std::asin(std::min(1.0, 0.5 * chord));
}

double Covariance::between(std::size_t i, std::size_t j) const noexcept {
  const double ratio = distance_km(i, j) / model_.range_km;
  if (model_.smoothness == 0.5) return model_.sill * std::exp(-ratio);
  const double s = std::sqrt(2 * model_.smoothness) * ratio;
  const double polynomial = model_.smoothness == 1.5 ? 1 + s : 1 + s + s * s / 3;
  return model_.sill * polynomial * std::exp(-s);
}

void CovarianceSource::fill(const Block& block, double* entries) const {
  for (int c = 0; c < block.columns; ++c) {
    const std::int64_t j = block.column + c;
    for (int r = 0; r < block.rows; ++r) {
      const std::int64_t i = block.row + r;
      const double smooth = covariance_.between(chosen_[static_cast<std::size_t>(i)],
                                                chosen_[static_cast<std::size_t>(j)]);
      *entries++ = i == j ? smooth + nugget_ : smooth;
    }
  }
}

}  // namespace cholesky
