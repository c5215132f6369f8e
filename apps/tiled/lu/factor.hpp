// SPDX-License-Identifier: BSD-3-Clause
// The tiled factorisation A = L U without pivoting, as tasks with blocking MPI; and its check.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../exchange.hpp"
#include "../replicated.hpp"
#include "../timed.hpp"

namespace lu {

using namespace tiled;

inline const std::vector<std::string> kernel_names{"getrf", "trsm", "gemm"};

// Measures each kernel on tiles of order `tile`, on the calling thread.
[[nodiscard]] KernelTimes measure_kernels(int tile);

// The kernels as tasks call them: computed, or slept. A sleeping kernel leaves its tile as it is.
class Kernels : public TimedKernels {
 public:
  using TimedKernels::TimedKernels;

  [[nodiscard]] int getrf(Tile a) const noexcept {
    return slept(0, a.rows, a.rows, a.rows) ? 0 : tiled::getrf(a);
  }
  void solve_upper(ConstTile diagonal, Tile a) const noexcept {
    if (!slept(1, a.rows, a.columns, a.columns)) tiled::solve_upper(diagonal, a);
  }
  void solve_lower(ConstTile diagonal, Tile a) const noexcept {
    if (!slept(1, a.rows, a.rows, a.columns)) tiled::solve_lower_unit(diagonal, a);
  }
  void gemm(ConstTile a, ConstTile b, Tile c) const noexcept {
    if (!slept(2, c.rows, c.columns, a.columns)) tiled::subtract_product(a, b, c);
  }
};

// One task for each operation on a tile, and one for each message; one sequential loop creates them
// in program order on every rank. Only the priority `sends` has a meaning. Overwrites
// `matrix`, of shape full: L below the diagonal, U on and above it. Returns, the same on every
// rank, 0, or the order of the first leading minor that is zero; the matrix is then undefined.
// Collective; called by main.
[[nodiscard]] std::int64_t factor(const Team& team, TiledMatrix& matrix, const Kernels& kernels,
                                  const TaskOptions& options, TaskUse& use);

// Every rank inserts the tasks of factor(), without messages: the tiles that they read and write
// are data with owners (tiled/owned.hpp). Only the option `trim` has a meaning here.
[[nodiscard]] std::int64_t factor_inserted(const Team& team, TiledMatrix& matrix,
                                           const Kernels& kernels, const TaskOptions& options,
                                           TaskUse& use);

// ||A - L U|| / (n ||A|| eps) in Frobenius norms, eps = 2^-53, the numerator estimated from
// `probes` vectors of random signs. Collective; called by main.
[[nodiscard]] double residual(const Team& team, const TiledMatrix& factor, const Source& source,
                              int probes);

}  // namespace lu
