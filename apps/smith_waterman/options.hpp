// SPDX-License-Identifier: BSD-3-Clause
// The command line of smith_waterman.
#pragma once

#include <optional>
#include <string>

#include "kernel/kernel.hpp"
#include "sequence/sequence.hpp"
#include "tiles/tiling.hpp"

namespace smith_waterman {

enum class Variant { sequential, mpi, imbrex };

[[nodiscard]] const char* name_of(Variant variant) noexcept;
[[nodiscard]] const char* name_of(Distribution distribution) noexcept;

struct Options {
  Scoring scoring;
  std::string a;  // paths; empty: random
  std::string b;
  Extent random;
  std::uint64_t seed = 1;
  Reading reading;
  Variant variant = Variant::imbrex;
  Distribution distribution = Distribution::block;
  std::optional<Extent> outer;
  Extent inner{.rows = 290, .columns = 300};
  bool plain = false;
  bool timed = false;
  std::optional<double> kernel_us;
  bool json = false;
  double progress_s = 10;
};

// Every rank reads the same arguments and comes to the same end. Throws tiled::InputError; if the
// user asks for help, returns with it in `help`.
[[nodiscard]] Options parse_options(int argc, char** argv, std::string& help);

}  // namespace smith_waterman
