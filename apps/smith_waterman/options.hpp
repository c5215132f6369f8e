// SPDX-License-Identifier: BSD-3-Clause
// The command line of smith_waterman.
#pragma once

#include <optional>
#include <string>

#include "../harness/command_line.hpp"
#include "kernel/kernel.hpp"
#include "sequence/sequence.hpp"
#include "tiles/tiling.hpp"

namespace smith_waterman {

enum class Variant { sequential, mpi, imbrex };
inline constexpr apps::Choice<Variant> variant_names[] = {{"sequential", Variant::sequential},
                                                          {"mpi", Variant::mpi},
                                                          {"imbrex", Variant::imbrex}};
inline constexpr apps::Choice<Distribution> distribution_names[] = {
    {"block", Distribution::block}, {"cyclic", Distribution::cyclic}};

enum class Kernels { real, plain, timed };
inline constexpr apps::Choice<Kernels> kernels_names[] = {
    {"real", Kernels::real}, {"plain", Kernels::plain}, {"timed", Kernels::timed}};

struct Options {
  Scoring scoring;
  std::string a;  // paths; empty: random
  std::string b;
  Extent random;
  std::uint64_t seed = 1;
  Reading reading;
  bool global = false;
  Variant variant = Variant::imbrex;
  Distribution distribution = Distribution::block;
  std::optional<Extent> outer;
  Extent inner{.rows = 290, .columns = 300};
  Kernels kernels = Kernels::real;
  std::optional<double> kernel_us;
  bool json = false;
  double progress_s = 10;

  [[nodiscard]] bool timed() const noexcept { return kernels == Kernels::timed; }
};

// Every rank reads the same arguments and comes to the same end. Throws InputError and HelpAsked.
[[nodiscard]] Options parse_options(int argc, char** argv);

}  // namespace smith_waterman
