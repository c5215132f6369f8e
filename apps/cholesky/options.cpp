// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <map>

namespace cholesky {
namespace {

constexpr const char* description =
    "Factors a symmetric positive definite matrix, A = L L^T, in tiles over MPI ranks: as\n"
    "blocking fork-join code, and as tasks that block in plain MPI calls; compares the two.";

void add_input(CLI::App& app, Options& options) {
  auto* const input = app.add_option_group("Matrix", "exactly one, or --check-rate");
  input->add_option("--locations", options.locations,
                    "Covariances of the places in this file (columns lat, lon and a value)");
  input->add_option("--random", options.random, "A random matrix of this order")
      ->check(CLI::PositiveNumber);
  input->add_flag("--check-rate", options.check_rate,
                  "Order 8192, both variants 7 times in turn; fails (3) if the median share of "
                  "the DGEMM rate is below 80 % with tasks");
  input->require_option(1);
  app.add_option("--seed", options.seed, "Of the random matrix")->capture_default_str();
  app.add_option("--bad-minor", options.bad_minor,
                 "Makes the random matrix's leading minor of this order negative, for tests")
      ->check(CLI::PositiveNumber);
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
  app.add_option("--variant", variant, "forkjoin, tasks, or both in turn")
      ->check(CLI::IsMember({"forkjoin", "tasks", "both"}))
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Runs of each variant")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--lookahead", options.tasks.lookahead,
                 "Tasks: steps whose received tiles may be in memory at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--priorities", options.tasks.priorities,
                 "Tasks: 1 to put the panel and its messages before the update")
      ->capture_default_str();
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
  return variant == Variant::fork_join ? "fork-join" : "tasks";
}

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  std::string variant = "both";
  CLI::App app(description, "cholesky");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  add_input(app, options);
  add_model(app, options);
  add_run(app, options, variant);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    help = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    throw InputError(std::string(error.what()) + " (--help lists the options)");
  }
  if (variant != "tasks") options.variants.push_back(Variant::fork_join);
  if (variant != "forkjoin") options.variants.push_back(Variant::tasks);
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
