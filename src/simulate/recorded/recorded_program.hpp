// SPDX-License-Identifier: BSD-3-Clause
// A traced run as a program to be simulated, at its number of ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulate/engine/program.hpp"

namespace imbrex::simulate {

struct RecordedSetup {
  std::string steps;          // the file (recorded_rank.hpp)
  int ranks = 1;              // that the file must be of
  Time creator_ns = 0;        // RankSetup::creator_ns
  double speed = 1;           // divides the measured times of tasks that are not in `times`
  std::vector<Kernel> times;  // of tasks with these names
};
// Throws Error if the file is no such file, or if its tasks break the rules of the runtime.
[[nodiscard]] std::unique_ptr<Program> make_recorded(const RecordedSetup& setup);

}  // namespace imbrex::simulate
