// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "../cholesky/timed.hpp"
#include "../lu/factor.hpp"
#include "../matmul/multiply.hpp"
#include "../timed_options.hpp"

namespace tiled {
namespace {

using apps::CommandLine;

constexpr int ranks_counted_max = 16384;

constexpr const char* description =
    "Runs an algorithm on matrices in tiles over MPI ranks, its variants in turn, and compares:\n"
    "  cholesky  A = L L^T of a symmetric positive definite matrix\n"
    "  lu        A = L U of a random matrix, without pivoting\n"
    "  matmul    C = A B of two random matrices\n"
    "as blocking fork-join code (cholesky), as tasks that block in plain MPI calls, and as tasks\n"
    "that every rank inserts, whose messages the runtime finds.";

struct Traits {
  const char* name;
  const std::vector<std::string>& kernels;
  bool has_fork_join;
  Priorities priorities;  // unless asked for otherwise
};
const Traits& traits_of(const std::string& name) {
  static const Traits all[] = {
      {"cholesky", cholesky::kernel_names, true, Priorities::panel},
      {"lu", lu::kernel_names, false, Priorities::none},
      {"matmul", matmul::kernel_names, false, Priorities::none}};
  return *std::ranges::find(all, name, &Traits::name);
}

// Options that only some algorithms take. Other algorithms refuse them, since they would have no
// effect.
struct TakenBy {
  const char* option;
  std::vector<std::string> algorithms;
};
const std::vector<TakenBy>& not_for_all() {
  static const std::vector<TakenBy> all = [] {
    std::vector<TakenBy> table{{"--priorities", {"cholesky", "lu"}},
                               {"--slices", {"matmul"}},
                               {"--check", {"matmul"}}};
    for (const char* const option :
         {"--locations", "--check-rate", "--count-only", "--bad-minor", "--n", "--ranks",
          "--column", "--holdout", "--smoothness", "--range", "--sill", "--nugget", "--distance"}) {
      table.push_back({option, {"cholesky"}});
    }
    return table;
  }();
  return all;
}

void check_taken(const CommandLine& line, const Options& options) {
  for (const auto& [option, algorithms] : not_for_all()) {
    if (!line.given(option)) continue;
    if (std::ranges::find(algorithms, options.algorithm) != algorithms.end()) continue;
    throw InputError(fmt::format("{}: {} does not take it, but {} does", option, options.algorithm,
                                 fmt::join(algorithms, " or ")));
  }
}

void add_input(CommandLine& line, Options& options) {
  CommandLine input = line.exactly_one("Matrix");
  input.number("--random", options.random, {1}, "A random matrix of this order");
  input.text("--locations", options.locations,
             "cholesky: covariances of the places in this file (columns lat, lon and a value)");
  input.flag("--check-rate", options.check_rate,
             "cholesky: order 8192, all variants 7 times in turn; fails (3) if the median share of "
             "the DGEMM rate is below 80 % with tasks");
  input.flag("--count-only", options.count_only,
             "cholesky: no matrix; prints how many tasks of each kind a factorisation with --n, "
             "--tile and --ranks would create, over whole tiles only");
  line.number("--seed", options.seed, {}, "Of the random matrix");
  line.number("--bad-minor", options.bad_minor, {1},
              "cholesky: makes the random matrix's leading minor of this order negative, for "
              "tests");
  line.number("--n", options.n, {1, std::int64_t{1} << 40},
              "With --count-only: the order of the matrix");
  line.number("--ranks", options.ranks, {1, ranks_counted_max},
              "With --count-only: as if started on so many");
}

// Requires the options of --count-only, and refuses options that it would not use.
void check_count(const CommandLine& line, const Options& options) {
  line.needs({"--n", "--ranks"}, options.count_only, "--count-only");
  if (!options.count_only) return;
  for (const char* const option : {"--n", "--ranks"}) {
    if (!line.given(option)) throw InputError(fmt::format("--count-only: needs {} too", option));
  }
  const std::vector<std::string> heeded{"algorithm", "--n", "--ranks", "--tile", "--grid"};
  for (const std::string& name : line.all_given()) {
    if (std::ranges::find(heeded, name) != heeded.end()) continue;
    throw InputError("--count-only: " + name + " means nothing to it; it takes --n, --ranks, "
                     "--tile and --grid");
  }
}

void add_model(CommandLine& line, Options& options) {
  using cholesky::Distance;
  cholesky::CovarianceModel& model = options.model;
  line.text("--column", options.column, "Locations: name of the column with the values");
  line.number("--holdout", options.holdout, {0},
              "Locations: hold out and predict every so-many-th place; 0: none");
  line.number("--smoothness", model.smoothness, {}, "Of the Matern covariance: 0.5, 1.5 or 2.5");
  line.number("--range", model.range_km, {}, "Range of the covariance, km");
  line.number("--sill", model.sill, {}, "Variance of the smooth part");
  line.number("--nugget", model.nugget, {}, "Variance of the rest");
  line.choice("--distance", model.distance,
              {{"chordal", Distance::chordal}, {"great-circle", Distance::great_circle}},
              "chordal or great-circle");
}

void add_run(CommandLine& line, Options& options) {
  line.number("--tile", options.tile, {1},
              "Rows of a tile; 384, from 8,000 rows on 512, or all if the matrix has fewer");
  line.text("--grid", options.grid, "ROWSxCOLUMNS of ranks; nearly square if not given");
  line.repetitions("--repeat", options.repeat);
  line.number("--check", options.checked_tiles, {0},
              "matmul: tiles of each rank that are compared with dgemm's");
  line.number("--rate-size", options.rate_size, {16, 16384},
              "Order of the DGEMMs that measure the rate");
  line.number("--rate-seconds", options.rate_s, {0.01, 60}, "How long each such measurement takes");
  line.json(options.json);
}

void add_tasks(CommandLine& line, Options& options, std::vector<std::string>& variants,
               std::optional<Priorities>& priorities) {
  line.words("--variant", variants, {"forkjoin", "tasks", "inserted", "all"},
             "forkjoin (cholesky), tasks, inserted, or all; separated by commas");
  line.number("--lookahead", options.tasks.lookahead, {1},
              "Tasks: steps whose received tiles may be in memory at once");
  line.choice("--priorities", priorities,
              {{"none", Priorities::none},
               {"panel", Priorities::panel},
               {"sends", Priorities::sends}},
              "cholesky, lu: none; sends to mark the sends alone, for the policies ma1, ma2, ma3 "
              "and sa; cholesky: panel, which it does if not told, to put the panel and its "
              "messages before the update");
  line.flag("--trim", options.tasks.trim,
            "Inserted: each rank leaves out of the loop what does not concern it");
  line.number("--slices", options.tasks.slices, {1},
              "matmul, inserted: parts that are summed to C, each by a group of ranks");
  std::vector<std::string> kernels;
  for (const char* const name : {"cholesky", "lu", "matmul"}) {
    kernels.push_back(fmt::format("{} ({})", fmt::join(traits_of(name).kernels, ","), name));
  }
  add_timed(line, fmt::format("{}", fmt::join(kernels, ", ")), " on a whole tile", options.timed);
}

std::vector<Variant> read_variants(const std::vector<std::string>& words,
                                   const Traits& algorithm) {
  const auto has = [&](const char* const word) {
    return std::ranges::find(words, word) != words.end();
  };
  if (has("forkjoin") && !algorithm.has_fork_join) {
    throw InputError(fmt::format("--variant forkjoin: {} has tasks and inserted", algorithm.name));
  }
  std::vector<Variant> variants;
  if (has("forkjoin") || (has("all") && algorithm.has_fork_join)) {
    variants.push_back(Variant::fork_join);
  }
  if (has("tasks") || has("all")) variants.push_back(Variant::tasks);
  if (has("inserted") || has("all")) variants.push_back(Variant::inserted);
  return variants;
}

// Refuses options that do not go together.
void check_together(const Options& options) {
  const bool inserted = options.variants.back() == Variant::inserted;
  if (options.timed.timed && (options.check_rate || !options.locations.empty())) {
    throw InputError("--kernels timed: makes no factor that could be rated or used; use --random");
  }
  if (options.tasks.trim && !inserted) throw InputError("--trim: needs --variant inserted");
  if (options.tasks.slices > 1 && !inserted) throw InputError("--slices: needs --variant inserted");
  if (options.tasks.priorities == Priorities::panel && options.algorithm != "cholesky") {
    throw InputError(fmt::format("--priorities panel: {} has none and sends", options.algorithm));
  }
  if (options.tasks.slices > 1 && options.tasks.trim) {
    throw InputError("--trim: not with --slices, where others than its owner add to a tile");
  }
  if (options.bad_minor > options.random) {
    throw InputError("--bad-minor: needs --random with at least as many rows");
  }
  if (const std::string wrong = check(options.model); !wrong.empty()) throw InputError(wrong);
}

}  // namespace

int Options::tile_of(const std::int64_t rows) const {
  if (tile != 0) return tile;
  return static_cast<int>(std::min<std::int64_t>(rows < 8000 ? 384 : 512, rows));
}

Options parse_options(int argc, char** argv) {
  Options options;
  std::vector<std::string> variants{"all"};
  std::optional<Priorities> priorities;
  CommandLine line("tiled", description);
  line.word("algorithm", options.algorithm, {"cholesky", "lu", "matmul"}, "cholesky, lu or matmul");
  line.require("algorithm");
  add_input(line, options);
  add_model(line, options);
  add_run(line, options);
  add_tasks(line, options, variants, priorities);
  line.parse(argc, argv);
  const Traits& algorithm = traits_of(options.algorithm);
  check_taken(line, options);
  check_count(line, options);
  check_timed(line, algorithm.kernels, options.timed);
  options.variants = read_variants(variants, algorithm);
  options.tasks.priorities = priorities.value_or(algorithm.priorities);
  check_together(options);
  if (options.check_rate) {
    options.random = 8192;
    options.repeat = 7;
  }
  return options;
}

}  // namespace tiled
