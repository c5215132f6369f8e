// SPDX-License-Identifier: BSD-3-Clause
// The command line.
#pragma once

#include <cstdint>
#include <vector>

#include "../harness/input_error.hpp"
#include "measure.hpp"
#include "variants.hpp"

namespace stencil1d {

using apps::InputError;

struct Variant {
  const char* name;
  void (*run)(const Domain& domain, Field& field, int steps);
};
[[nodiscard]] const std::vector<Variant>& all_variants();

// The defaults are those of the paper.
struct Options {
  std::int64_t size = 10'000'000;
  std::int64_t ghost = 4096;
  int steps = 1000;
  int repeat = 10;
  int chunks = 64;
  bool periodic = true;
  bool verify = false;
  bool hidden = false;  // say how much of the messages each variant hides; `block` comes first
  bool json = false;    // print the figures so, too
  std::vector<Variant> variants;
  double cell_ns = 0;  // as in Domain
  Priorities priorities = Priorities::borders;

  bool measure = false;  // of progress, instead of the benchmark
  ProgressOptions progress;
};

// Throws InputError and HelpAsked.
[[nodiscard]] Options parse_options(int argc, char** argv);

}  // namespace stencil1d
