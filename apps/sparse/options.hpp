// SPDX-License-Identifier: BSD-3-Clause
// What the command lines of programs that solve on a brick have in common.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "../tiled/timed_options.hpp"

namespace sparse {

struct Options {
  int n = 32;  // of a rank in each dimension; what, the program says
  int iterations;
  int blocks = 4;
  int repetitions = 1;
  std::string variant = "all";
  tiled::TimedOptions timed = {};  // the caller reads it from `timed_text` when all is parsed
  tiled::TimedText timed_text = {};
  std::string json = {};
};

// `options` outlives the parsing.
void add_options(CLI::App& app, const std::vector<std::string>& kernel_names, Options& options);

}  // namespace sparse
