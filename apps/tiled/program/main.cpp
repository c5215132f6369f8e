// SPDX-License-Identifier: BSD-3-Clause
// tiled: reads the command line, makes the algorithm with its matrices, runs the variants in turn,
// reports.
// Exit codes: 0 well; 1 wrong input, or a matrix that cannot be factored; 2 a residual that is too
// large; 3 --check-rate not reached. All ranks exit alike.
#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <memory>

#include "measure.hpp"
#include "options.hpp"
#include "report.hpp"

namespace tiled {

Algorithm::Algorithm(const Team& team, const Options& options, const Layout& layout,
                     const int matrices, KernelTimes (*const measure)(int))
    : team_(team),
      options_(options),
      layout_((check_layout(team, layout, matrices), layout)),
      times_(find_times(team, options.timed, [&] { return measure(layout.tile); })) {}

std::string Algorithm::describe_minor(std::int64_t order) const {
  return fmt::format("the leading minor of order {} is zero", order);
}

namespace {

constexpr double rate_goal = 0.8;

std::unique_ptr<Algorithm> make(const Team& team, const Options& options) {
  if (options.algorithm == "cholesky") return make_cholesky(team, options);
  return options.algorithm == "lu" ? make_lu(team, options) : make_matmul(team, options);
}

int judge(const Team& team, const Options& options, const apps::Runs& runs,
          const double residual_limit) {
  if (!runs.right()) {
    if (team.rank() == 0) fmt::print(stderr, "tiled: a residual is above {}\n", residual_limit);
    return 2;
  }
  const auto tasks = std::ranges::find(options.variants, Variant::tasks);
  if (!options.check_rate || tasks == options.variants.end()) return 0;
  const double share =
      runs.median(static_cast<std::size_t>(tasks - options.variants.begin()), "share");
  if (team.rank() == 0) {
    fmt::print("Goal of {:.0f} % of the DGEMM rate with tasks: {:.1f} %, {}.\n", 100 * rate_goal,
               100 * share, share >= rate_goal ? "reached" : "not reached");
  }
  return share >= rate_goal ? 0 : 3;
}

int run(int argc, char** argv) {
  const int ranks = apps::ranks_of_all();
  const Options options = parse_options(argc, argv);
  if (options.count_only) {
    if (apps::rank_of_all() == 0) print_count(options);
    return 0;
  }
  const Team team(options.grid.empty() ? nearly_square(ranks) : parse_grid(options.grid, ranks));
  apps::check_writable(team.all(), "--json", options.json);
  const std::unique_ptr<Algorithm> algorithm = make(team, options);
  if (team.rank() == 0) print_problem(options, *algorithm);
  std::vector<std::string> names;
  for (const Variant variant : options.variants) {
    names.emplace_back(word_of(variant_names, variant));
  }
  apps::Runs runs(names, options.repeat, team.rank() == 0);
  Stopwatch stopwatch(team, options, *algorithm);
  runs.measure([&](const apps::Turn& turn) {
    return stopwatch.run(options.variants[turn.variant]);
  });
  if (team.rank() == 0) {
    print_comparison(runs, stopwatch, algorithm->layout());
    write_json(options, *algorithm, runs);
  }
  return judge(team, options, runs, algorithm->residual_limit());
}

}  // namespace
}  // namespace tiled

int main(int argc, char** argv) {
  return tiled::run_program("tiled", argc, argv, &tiled::run);
}
