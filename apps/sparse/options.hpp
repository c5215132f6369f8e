// SPDX-License-Identifier: BSD-3-Clause
// What the command lines of programs that solve on a brick have in common.
#pragma once

#include <string>
#include <vector>

#include "../tiled/timed_options.hpp"

namespace sparse {

struct Options {
  int n = 32;  // of a rank in each dimension; what, the program says
  int iterations;
  int blocks = 4;
  int repetitions = 1;
  std::vector<std::string> variants = {};
  tiled::TimedOptions timed = {};
  std::string json = {};
};

// `options` outlives the parsing.
void add_options(apps::CommandLine& line, const std::vector<std::string>& kernels,
                 Options& options);
// Parses, and checks those options. Throws InputError and HelpAsked.
void parse(apps::CommandLine& line, int argc, char** argv,
           const std::vector<std::string>& kernels, Options& options);

}  // namespace sparse
