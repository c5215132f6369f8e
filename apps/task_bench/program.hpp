// SPDX-License-Identifier: BSD-3-Clause
// All that a program of this benchmark does between MPI_Init and MPI_Finalize. It knows no variant:
// each program brings its own.
#pragma once

#include <string_view>
#include <vector>

#include "variants.hpp"

namespace task_bench {

struct Variant {
  const char* name;
  double (*run)(const Run& run, Board& board);
  int (*workers)();  // of this rank
};

// Reads the command line, runs the graphs, and prints the figures. Returns 0. A task that gets a
// wrong input ends all ranks with code 2. Throws as apps::run_program() wants it.
[[nodiscard]] int run(int argc, char** argv, const std::vector<Variant>& variants);

}  // namespace task_bench
