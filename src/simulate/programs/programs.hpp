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

}  // namespace imbrex::simulate
