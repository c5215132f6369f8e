// SPDX-License-Identifier: BSD-3-Clause
// The command line.
#pragma once

#include <string>
#include <vector>

#include "../harness/input_error.hpp"
#include "point.hpp"

namespace task_bench {

using apps::InputError;

struct Options {
  std::string variant = "tasks";
  std::vector<const Pattern*> patterns;
  Shape shape;
  Work work;
  std::vector<int> rounds;  // one run for each
  std::size_t bytes = sizeof(Mark);
  double limit_ms = 100;
  int repeat = 1;
  Fault fault;
  bool json = false;
};

// Throws InputError and HelpAsked.
[[nodiscard]] Options parse_options(int argc, char** argv);

}  // namespace task_bench
