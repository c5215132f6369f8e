// SPDX-License-Identifier: BSD-3-Clause
// The command line: one set of options for all algorithms; it says which of them take an option.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../harness/command_line.hpp"
#include "../cholesky/geo/covariance.hpp"
#include "../exchange.hpp"
#include "../timed.hpp"

namespace tiled {

enum class Variant : std::uint8_t { fork_join, tasks, inserted };
inline constexpr apps::Choice<Variant> variant_names[] = {{"forkjoin", Variant::fork_join},
                                                          {"tasks", Variant::tasks},
                                                          {"inserted", Variant::inserted}};

struct Options {
  std::string algorithm;  // cholesky, lu or matmul

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
  cholesky::CovarianceModel model{.smoothness = 1.5,
                                  .range_km = 125,
                                  .sill = 320000,
                                  .nugget = 2000,
                                  .distance = cholesky::Distance::chordal};
  std::uint64_t seed = 1;
  std::int64_t bad_minor = 0;

  int tile = 0;      // 0: tile_of() decides
  std::string grid;  // empty: nearly square
  std::vector<Variant> variants;
  int repeat = 1;
  TaskOptions tasks;
  TimedOptions timed;
  int checked_tiles = 4;  // of a product, on each rank
  int rate_size = 1024;
  double rate_s = 0.25;
  std::string json;
  bool check_rate = false;

  // Returns the tile size of the command line. Without one, the order decides: larger tiles run
  // nearer to the DGEMM rate, smaller ones leave more to overlap; a tile is no larger than the
  // matrix.
  [[nodiscard]] int tile_of(std::int64_t rows) const;
};

// Every rank reads the same arguments and comes to the same end. Throws InputError and HelpAsked.
[[nodiscard]] Options parse_options(int argc, char** argv);

}  // namespace tiled
