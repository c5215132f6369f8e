// SPDX-License-Identifier: BSD-3-Clause
// The command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../tiled/team.hpp"
#include "field.hpp"
#include "lines.hpp"
#include "stages.hpp"

namespace fft {

using apps::InputError;

struct Options {
  int dims = 2;
  std::int64_t n = 0;
  std::string grid;    // in 3-D; empty: nearly square
  std::vector<std::string> variants{"messages"};
  Cuts cuts;
  bool pack = false;
  int repeat = 1;
  Field::Kind input = Field::Kind::random;
  std::uint64_t seed = 1;
  std::string json;
  bool check = true;
  Planning planning = Planning::measure;
  bool timed = false;
  std::optional<double> line_us;  // measured if not given
  double progress_s = 5;

  [[nodiscard]] bool has(const std::string& variant) const;
  [[nodiscard]] bool packs() const {
    return pack || has("scatters") || has("partial-blocks");
  }
};

// Throws InputError and HelpAsked.
[[nodiscard]] Options parse_options(int argc, char** argv);

// The grid of ranks: one row of them in 2-D. Throws InputError for sizes that do not fit it.
[[nodiscard]] tiled::Grid check_sizes(const Options& options, int ranks);

}  // namespace fft
