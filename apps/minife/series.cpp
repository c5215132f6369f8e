// SPDX-License-Identifier: BSD-3-Clause
#include "series.hpp"

#include <cmath>
#include <numbers>

namespace minife {

double temperature(const double x, const double y, const double z, const int terms) noexcept {
  using std::numbers::pi;
  double sum = 0;
  for (int i = 0; i < terms; ++i) {
    const double m = 2 * i + 1;  // the even ones are zero
    double inner = 0;
    for (int j = 0; j < terms; ++j) {
      const double n = 2 * j + 1;
      const double decay = pi * std::hypot(m, n);
      // sinh(decay x) / sinh(decay), for a decay of which neither can be had.
      const double along = std::exp(decay * (x - 1)) * std::expm1(-2 * decay * x) /
                           std::expm1(-2 * decay);
      inner += along * std::sin(n * pi * z) / n;
    }
    sum += inner * std::sin(m * pi * y) / m;
  }
  return 16 / (pi * pi) * sum;
}

}  // namespace minife
