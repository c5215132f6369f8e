// SPDX-License-Identifier: BSD-3-Clause
// The generators: programs whose tasks and messages are known without running them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "simulate/engine/program.hpp"

namespace imbrex::simulate {

// The duration of a kernel, in nanoseconds, by its name.
using DurationOf = std::function<Time(std::string_view kernel)>;

struct CholeskySetup {
  std::int64_t n = 0;
  int tile = 1;
  int rows = 1;         // of the grid of ranks
  int columns = 1;
  int lookahead = 0;    // steps whose received tiles are in memory at once; 0: all
  bool marks = false;   // sends have a priority, as `tiled cholesky --priorities sends`
};
// As apps/tiled/cholesky/tasks.cpp. Kernels: potrf, trsm, syrk, gemm.
[[nodiscard]] std::unique_ptr<Program> make_cholesky(const CholeskySetup& setup,
                                                     const DurationOf& duration_of);

struct StencilSetup {
  int ranks = 1;
  std::int64_t size = 0;     // cells of all ranks
  std::int64_t ghost = 1;    // cells that a rank gets from each neighbour
  int chunks = 1;            // of what is computed between the two borders
  int steps = 1;
  bool is_periodic = true;
  bool marks = false;        // as for Cholesky
  double cell_ns = 0;        // to compute one
};
// As apps/stencil1d/tasks.cpp, with one finish() around all steps. Throws Error if a rank has fewer
// than 3 * ghost cells.
[[nodiscard]] std::unique_ptr<Program> make_stencil(const StencilSetup& setup);

}  // namespace imbrex::simulate
