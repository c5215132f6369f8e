// SPDX-License-Identifier: BSD-3-Clause
// A comparison for tests of a tiled matrix with a dense one.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "replicated.hpp"

namespace tiled {

// This rank's tiles are those of `dense`, by columns, but for `relative` of each element and
// `absolute`.
inline void expect_near(const TiledMatrix& matrix, const std::vector<double>& dense,
                        const double relative, const double absolute) {
  const Layout& layout = matrix.layout();
  for_each_tile_of_mine(matrix, [&](int i, int j) {
    for (int c = 0; c < layout.extent(j); ++c) {
      for (int r = 0; r < layout.extent(i); ++r) {
        const double expected = dense[static_cast<std::size_t>(
            (layout.first(j) + c) * layout.n + layout.first(i) + r)];
        ASSERT_NEAR(matrix.tile(i, j)[c * layout.extent(i) + r], expected,
                    relative * std::abs(expected) + absolute)
            << "tile " << i << ", " << j << " row " << r << " column " << c;
      }
    }
  });
}

}  // namespace tiled
