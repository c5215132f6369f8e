// SPDX-License-Identifier: BSD-3-Clause
// The kernels as tasks call them: computed, or slept.
#pragma once

#include <string>
#include <vector>

#include "../kernels.hpp"
#include "../timed.hpp"

namespace cholesky {

using namespace tiled;

inline const std::vector<std::string> kernel_names{"potrf", "trsm", "syrk", "gemm"};

// Measures each kernel on tiles of order `tile`, on the calling thread.
[[nodiscard]] KernelTimes measure_kernels(int tile);

// Kernels that compute or sleep; a sleeping kernel leaves its tile as it is.
class Kernels : public TimedKernels {
 public:
  using TimedKernels::TimedKernels;

  [[nodiscard]] int potrf(Tile a) const noexcept {
    return slept(0, a.rows, a.rows, a.rows) ? 0 : tiled::potrf(a);
  }
  void trsm(ConstTile diagonal, Tile a) const noexcept {
    if (!slept(1, a.rows, a.columns, a.columns)) tiled::trsm(diagonal, a);
  }
  void syrk(ConstTile a, Tile c) const noexcept {
    if (!slept(2, c.rows, c.rows, a.columns)) tiled::syrk(a, c);
  }
  void gemm(ConstTile a, ConstTile b, Tile c) const noexcept {
    if (!slept(3, c.rows, c.columns, a.columns)) tiled::gemm(a, b, c);
  }
};

}  // namespace cholesky
