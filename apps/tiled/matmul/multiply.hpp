// SPDX-License-Identifier: BSD-3-Clause
// The tiled product C = C + A B of square matrices, by tasks with messages and by tasks that every
// rank inserts; and its check.
#pragma once

#include <string>
#include <vector>

#include "../exchange.hpp"
#include "../replicated.hpp"
#include "../timed.hpp"

namespace matmul {

using namespace tiled;

inline const std::vector<std::string> kernel_names{"gemm"};

// On tiles of this order, by the calling thread alone.
[[nodiscard]] KernelTimes measure_kernels(int tile);

// The kernel as tasks call it: computed, or slept. A sleeping kernel leaves its tile as it is.
class Kernels : public TimedKernels {
 public:
  using TimedKernels::TimedKernels;

  void gemm(ConstTile a, ConstTile b, Tile c) const noexcept {
    if (!slept(0, c.rows, c.columns, a.columns)) tiled::add_product(a, b, c);
  }
};

// All of one layout, of shape full.
struct Matrices {
  TiledMatrix a, b, c;
};

// Both add to C, in the order of the inner index; with slices the order of the parts is open.
// Collective; called by main.

// One task for each product of tiles, and one for each message.
void multiply_messages(const Team& team, Matrices& matrices, const Kernels& kernels,
                       const TaskOptions& options, TaskUse& use);
// Every rank inserts all products, with the tiles as data with owners.
void multiply_inserted(const Team& team, Matrices& matrices, const Kernels& kernels,
                       const TaskOptions& options, TaskUse& use);

// ||C - A B|| / (n ||A|| ||B|| eps) in Frobenius norms, eps = 2^-53, over at most `tiles` tiles of
// each rank, each against one dgemm of its rows of A and its columns of B. Collective.
[[nodiscard]] double error(const Team& team, const TiledMatrix& c, const Source& a, const Source& b,
                           int tiles);

}  // namespace matmul
