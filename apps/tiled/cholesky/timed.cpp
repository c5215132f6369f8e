// SPDX-License-Identifier: BSD-3-Clause
#include "timed.hpp"

namespace cholesky {

KernelTimes measure_kernels(const int tile) {
  const auto rows = static_cast<std::size_t>(tile);
  std::vector<double> diagonal(rows * rows, 1e-3);
  for (std::size_t i = 0; i < rows; ++i) diagonal[i * rows + i] = static_cast<double>(tile);
  const std::vector<double> other(rows * rows, 1e-3);
  std::vector<double> result;
  const ConstTile a{other.data(), tile, tile};
  const auto fresh = [&] { result = diagonal; };
  const auto target = [&] { return Tile{result.data(), tile, tile}; };
  return {least_time(fresh, [&] { (void)potrf(target()); }),
          least_time(fresh, [&] { trsm({diagonal.data(), tile, tile}, target()); }),
          least_time(fresh, [&] { syrk(a, target()); }),
          least_time(fresh, [&] { gemm(a, a, target()); })};
}

}  // namespace cholesky
