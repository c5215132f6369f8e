// SPDX-License-Identifier: BSD-3-Clause
// The command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "factor.hpp"
#include "geo/covariance.hpp"
#include "solve.hpp"

namespace cholesky {

enum class Variant { fork_join, tasks, inserted };
[[nodiscard]] const char* name_of(Variant variant) noexcept;

struct Options {
  // The matrix: one of the two, unless only tasks are counted.
  std::string locations;
  std::int64_t random = 0;

  // Counts tasks: of a matrix of order n over this many ranks, without either.
  bool count_only = false;
  std::int64_t n = 0;
  int ranks = 0;

  std::string column = "elevation_m";
  int holdout = 20;
  // Close to the maximum of the likelihood for data/airports_us.csv.
  CovarianceModel model{.smoothness = 1.5,
                        .range_km = 125,
                        .sill = 320000,
                        .nugget = 2000,
                        .distance = Distance::chordal};
  std::uint64_t seed = 1;
  std::int64_t bad_minor = 0;

  int tile = 0;  // 0: default_tile(n), or n if that is less
  std::string grid;  // empty: nearly square
  std::vector<Variant> variants;
  int repeat = 1;
  TaskOptions tasks{.lookahead = 3, .priorities = Priorities::panel};
  TimedOptions timed;
  ResidualOptions residual;
  int rate_size = 1024;
  double rate_s = 0.25;
  std::string json;
  bool check_rate = false;

  // Larger tiles run nearer to the DGEMM rate, smaller ones leave more to overlap: by the order.
  [[nodiscard]] static constexpr int default_tile(std::int64_t n) { return n < 8000 ? 384 : 512; }
};

// Every rank reads the same arguments and comes to the same end. Throws InputError; if the user
// asks for help, returns with it in `help`.
[[nodiscard]] Options parse_options(int argc, char** argv, std::string& help);

}  // namespace cholesky
