// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>

#include "../cholesky/timed.hpp"
#include "../lu/factor.hpp"
#include "../matmul/multiply.hpp"
#include "../timed_options.hpp"

namespace tiled {
namespace {

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

void check_taken(const CLI::App& app, const Options& options) {
  for (const auto& [option, algorithms] : not_for_all()) {
    if (app.get_option(option)->count() == 0) continue;
    if (std::ranges::find(algorithms, options.algorithm) != algorithms.end()) continue;
    throw InputError(fmt::format("{}: {} does not take it, but {} does", option, options.algorithm,
                                 fmt::join(algorithms, " or ")));
  }
}

void add_input(CLI::App& app, Options& options) {
  auto* const input = app.add_option_group("Matrix", "exactly one");
  input->add_option("--random", options.random, "A random matrix of this order")
      ->check(CLI::PositiveNumber);
  input->add_option("--locations", options.locations,
                    "cholesky: covariances of the places in this file (columns lat, lon and a "
                    "value)");
  input->add_flag("--check-rate", options.check_rate,
                  "cholesky: order 8192, all variants 7 times in turn; fails (3) if the median "
                  "share of the DGEMM rate is below 80 % with tasks");
  input->add_flag("--count-only", options.count_only,
                  "cholesky: no matrix; prints how many tasks of each kind a factorisation with "
                  "--n, --tile and --ranks would create, over whole tiles only");
  input->require_option(1);
  app.add_option("--seed", options.seed, "Of the random matrix")->capture_default_str();
  app.add_option("--bad-minor", options.bad_minor,
                 "cholesky: makes the random matrix's leading minor of this order negative, for "
                 "tests")
      ->check(CLI::PositiveNumber);
}

void add_count(CLI::App& app, Options& options) {
  app.add_option("--n", options.n, "With --count-only: the order of the matrix")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--ranks", options.ranks, "With --count-only: as if started on so many")
      ->check(CLI::Range(1, ranks_counted_max));
}

// Requires the options of --count-only, and refuses options that it would not use.
void check_count(const CLI::App& app, const Options& options) {
  const std::vector<std::string> needed{"--n", "--ranks"};
  const std::vector<std::string> heeded{"algorithm", "--count-only", "--n",
                                        "--ranks",   "--tile",       "--grid"};
  for (const CLI::Option* const option : app.get_options()) {
    const std::string name = option->get_name();
    const auto is_in = [&name](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (options.count_only && is_in(needed) && option->count() == 0) {
      throw InputError("--count-only: needs " + name + " too");
    }
    if (options.count_only && !is_in(heeded) && option->count() != 0) {
      throw InputError("--count-only: " + name + " means nothing to it; it takes --n, --ranks, "
                       "--tile and --grid");
    }
    if (!options.count_only && is_in(needed) && option->count() != 0) {
      throw InputError(name + ": needs --count-only");
    }
  }
}

void add_model(CLI::App& app, Options& options) {
  using cholesky::Distance;
  const std::map<std::string, Distance> distances{{"chordal", Distance::chordal},
                                                  {"great-circle", Distance::great_circle}};
  cholesky::CovarianceModel& model = options.model;
  app.add_option("--column", options.column, "Locations: name of the column with the values")
      ->capture_default_str();
  app.add_option("--holdout", options.holdout,
                 "Locations: hold out and predict every so-many-th place; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--smoothness", model.smoothness, "Of the Matern covariance: 0.5, 1.5 or 2.5")
      ->capture_default_str();
  app.add_option("--range", model.range_km, "Range of the covariance, km")->capture_default_str();
  app.add_option("--sill", model.sill, "Variance of the smooth part")->capture_default_str();
  app.add_option("--nugget", model.nugget, "Variance of the rest")->capture_default_str();
  app.add_option("--distance", model.distance, "chordal or great-circle")
      ->transform(CLI::CheckedTransformer(distances));
}

// The text of the command line before it is checked.
struct Words {
  std::vector<std::string> variants{"all"};
  std::string priorities;
  TimedText timed;
};

void add_tasks(CLI::App& app, Options& options, Words& words) {
  apps::add_list(app, "--variant", words.variants,
                 "forkjoin (cholesky), tasks, inserted, or all; separated by commas")
      ->check(CLI::IsMember({"forkjoin", "tasks", "inserted", "all"}))
      ->capture_default_str();
  app.add_option("--lookahead", options.tasks.lookahead,
                 "Tasks: steps whose received tiles may be in memory at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--priorities", words.priorities,
                 "cholesky, lu: none; sends to mark the sends alone, for the policies ma1, ma2, "
                 "ma3 and sa; cholesky: panel, which it does if not told, to put the panel and its "
                 "messages before the update")
      ->check(CLI::IsMember({"none", "panel", "sends"}));
  app.add_flag("--trim", options.tasks.trim,
               "Inserted: each rank leaves out of the loop what does not concern it");
  app.add_option("--slices", options.tasks.slices,
                 "matmul, inserted: parts that are summed to C, each by a group of ranks")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void add_run(CLI::App& app, Options& options) {
  app.add_option("--tile", options.tile,
                 "Rows of a tile; 384, from 8,000 rows on 512, or all if the matrix has fewer")
      ->check(CLI::PositiveNumber);
  app.add_option("--grid", options.grid, "ROWSxCOLUMNS of ranks; nearly square if not given");
  app.add_option("--repeat", options.repeat, "Runs of each variant")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--check", options.checked_tiles,
                 "matmul: tiles of each rank that are compared with dgemm's")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--rate-size", options.rate_size, "Order of the DGEMMs that measure the rate")
      ->check(CLI::Range(16, 16384))
      ->capture_default_str();
  app.add_option("--rate-seconds", options.rate_s, "How long each such measurement takes")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the figures there too");
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

Priorities read_priorities(const std::string& word, const Traits& algorithm) {
  if (word.empty()) return algorithm.priorities;
  if (word == "panel" && algorithm.priorities != Priorities::panel) {
    throw InputError(fmt::format("--priorities panel: {} has none and sends", algorithm.name));
  }
  return word == "none" ? Priorities::none
         : word == "panel" ? Priorities::panel : Priorities::sends;
}

// Refuses options that do not go together.
void check_together(const Options& options) {
  const bool inserted = options.variants.back() == Variant::inserted;
  if (options.timed.timed && (options.check_rate || !options.locations.empty())) {
    throw InputError("--kernels timed: makes no factor that could be rated or used; use --random");
  }
  if (options.tasks.trim && !inserted) throw InputError("--trim: needs --variant inserted");
  if (options.tasks.slices > 1 && !inserted) throw InputError("--slices: needs --variant inserted");
  if (options.tasks.slices > 1 && options.tasks.trim) {
    throw InputError("--trim: not with --slices, where others than its owner add to a tile");
  }
  if (options.bad_minor > options.random) {
    throw InputError("--bad-minor: needs --random with at least as many rows");
  }
  if (const std::string wrong = check(options.model); !wrong.empty()) throw InputError(wrong);
}

}  // namespace

const char* name_of(Variant variant) noexcept {
  switch (variant) {
    case Variant::fork_join: return "forkjoin";
    case Variant::tasks: return "tasks";
    default: return "inserted";
  }
}

int Options::tile_of(const std::int64_t rows) const {
  if (tile != 0) return tile;
  return static_cast<int>(std::min<std::int64_t>(rows < 8000 ? 384 : 512, rows));
}

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  Words words;
  CLI::App app(description, "tiled");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  app.add_option("algorithm", options.algorithm, "cholesky, lu or matmul")
      ->check(CLI::IsMember({"cholesky", "lu", "matmul"}))
      ->required();
  add_input(app, options);
  add_count(app, options);
  add_model(app, options);
  add_run(app, options);
  add_tasks(app, options, words);
  std::vector<std::string> kernels;
  for (const char* const name : {"cholesky", "lu", "matmul"}) {
    kernels.push_back(fmt::format("{} ({})", fmt::join(traits_of(name).kernels, ","), name));
  }
  add_timed(app, {fmt::format("{}", fmt::join(kernels, ", "))}, words.timed);
  if (!apps::parse(app, argc, argv, help)) return options;
  const Traits& algorithm = traits_of(options.algorithm);
  check_taken(app, options);
  check_count(app, options);
  options.timed = read_timed(algorithm.kernels, words.timed);
  options.variants = read_variants(words.variants, algorithm);
  options.tasks.priorities = read_priorities(words.priorities, algorithm);
  check_together(options);
  if (options.check_rate) {
    options.random = 8192;
    options.repeat = 7;
  }
  return options;
}

}  // namespace tiled
