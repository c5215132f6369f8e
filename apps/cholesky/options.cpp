// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>

#include "../tiled/timed_options.hpp"

namespace cholesky {
namespace {

constexpr int ranks_counted_max = 16384;

constexpr const char* description =
    "Factors a symmetric positive definite matrix, A = L L^T, in tiles over MPI ranks: as\n"
    "blocking fork-join code, as tasks that block in plain MPI calls, and as tasks that every\n"
    "rank inserts, whose messages the runtime finds; compares them.";

void add_input(CLI::App& app, Options& options) {
  auto* const input = app.add_option_group("Matrix", "exactly one");
  input->add_option("--locations", options.locations,
                    "Covariances of the places in this file (columns lat, lon and a value)");
  input->add_option("--random", options.random, "A random matrix of this order")
      ->check(CLI::PositiveNumber);
  input->add_flag("--check-rate", options.check_rate,
                  "Order 8192, both variants 7 times in turn; fails (3) if the median share of "
                  "the DGEMM rate is below 80 % with tasks");
  input->add_flag("--count-only", options.count_only,
                  "No matrix: prints how many tasks of each kind a factorisation with --n, --tile "
                  "and --ranks would create, over whole tiles only");
  input->require_option(1);
  app.add_option("--seed", options.seed, "Of the random matrix")->capture_default_str();
  app.add_option("--bad-minor", options.bad_minor,
                 "Makes the random matrix's leading minor of this order negative, for tests")
      ->check(CLI::PositiveNumber);
}

void add_count(CLI::App& app, Options& options) {
  app.add_option("--n", options.n, "With --count-only: the order of the matrix")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--ranks", options.ranks, "With --count-only: as if started on so many")
      ->check(CLI::Range(1, ranks_counted_max));
}

// What --count-only needs, and nothing that it would not heed.
void check_count(const CLI::App& app, const Options& options) {
  const std::vector<std::string> needed{"--n", "--ranks"};
  const std::vector<std::string> heeded{"--count-only", "--n", "--ranks", "--tile", "--grid"};
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
  const std::map<std::string, Distance> distances{{"chordal", Distance::chordal},
                                                  {"great-circle", Distance::great_circle}};
  CovarianceModel& model = options.model;
  app.add_option("--column", options.column, "Name of the column with the values")
      ->capture_default_str();
  app.add_option("--holdout", options.holdout,
                 "Hold out and predict every so-many-th place; 0: none")
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

void add_run(CLI::App& app, Options& options, std::string& variant) {
  app.add_option("--tile", options.tile, 
                 "Rows of a tile; 384, from 8,000 rows on 512, or all if the matrix has fewer")
      ->check(CLI::PositiveNumber);
  app.add_option("--grid", options.grid, "ROWSxCOLUMNS of ranks; nearly square if not given");
  app.add_option("--variant", variant,
                 "forkjoin, tasks, inserted, both of the first two in turn, or all three")
      ->check(CLI::IsMember({"forkjoin", "tasks", "inserted", "both", "all"}))
      ->capture_default_str();
  app.add_flag("--trim", options.tasks.trim,
               "Inserted: each rank leaves out of the loop what does not concern it");
  app.add_option("--repeat", options.repeat, "Runs of each variant")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--lookahead", options.tasks.lookahead,
                 "Tasks: steps whose received tiles may be in memory at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  const std::map<std::string, Priorities> priorities{{"none", Priorities::none},
                                                     {"panel", Priorities::panel},
                                                     {"sends", Priorities::sends}};
  app.add_option("--priorities", options.tasks.priorities,
                 "Tasks: none, panel to put the panel and its messages before the update, or sends "
                 "to mark the sends alone, for the policies ma1, ma2, ma3 and sa")
      ->transform(CLI::CheckedTransformer(priorities));
  app.add_option("--rate-size", options.rate_size, "Order of the DGEMMs that measure the rate")
      ->check(CLI::Range(16, 16384))
      ->capture_default_str();
  app.add_option("--rate-seconds", options.rate_s, "How long each such measurement takes")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the figures there too");
}

}  // namespace

const char* name_of(Variant variant) noexcept {
  switch (variant) {
    case Variant::fork_join: return "fork-join";
    case Variant::tasks: return "tasks";
    default: return "inserted";
  }
}

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  std::string variant = "both";
  TimedText timed;
  CLI::App app(description, "cholesky");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  add_input(app, options);
  add_count(app, options);
  add_model(app, options);
  add_run(app, options, variant);
  add_timed(app, kernel_names, timed);
  if (!parse(app, argc, argv, help)) return options;
  check_count(app, options);
  options.timed = read_timed(kernel_names, timed);
  if (options.timed.timed && (options.check_rate || !options.locations.empty())) {
    throw InputError("--kernels timed: makes no factor that could be rated or used; use --random");
  }
  const auto asked = [&variant](const char* const name, const bool in_both) {
    return variant == name || variant == "all" || (in_both && variant == "both");
  };
  if (asked("forkjoin", true)) options.variants.push_back(Variant::fork_join);
  if (asked("tasks", true)) options.variants.push_back(Variant::tasks);
  if (asked("inserted", false)) options.variants.push_back(Variant::inserted);
  if (options.tasks.trim && options.variants.back() != Variant::inserted) {
    throw InputError("--trim: needs --variant inserted, or all");
  }
  if (options.check_rate) {
    options.random = 8192;
    options.repeat = 7;
  }
  if (options.bad_minor > options.random) {
    throw InputError("--bad-minor: needs --random with at least as many rows");
  }
  if (const std::string wrong = check(options.model); !wrong.empty()) throw InputError(wrong);
  return options;
}

}  // namespace cholesky
