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

std::vector<Run> run_all(const Team& team, const Options& options, Algorithm& algorithm) {
  std::vector<Run> runs;
  Stopwatch stopwatch(team, options, algorithm);
  for (int repetition = 0; repetition < options.repeat; ++repetition) {
    for (const Variant variant : options.variants) {
      runs.push_back(stopwatch.run(variant));
      const Run& run = runs.back();
      if (run.bad_minor != 0) throw InputError(algorithm.describe_minor(run.bad_minor));
      if (team.rank() == 0) print_run(static_cast<int>(runs.size()), run);
    }
  }
  return runs;
}

int judge(const Team& team, const Options& options, const std::vector<Run>& runs,
          const double residual_limit) {
  for (const Run& run : runs) {
    if (!run.residual || run.residual->value <= residual_limit) continue;  // false for NaN too
    if (team.rank() == 0) fmt::print(stderr, "tiled: a residual is above {}\n", residual_limit);
    return 2;
  }
  if (!options.check_rate || std::ranges::count(options.variants, Variant::tasks) == 0) return 0;
  const double share = median_share(runs, Variant::tasks);
  if (team.rank() == 0) {
    fmt::print("Goal of {:.0f} % of the DGEMM rate with tasks: {:.1f} %, {}.\n", 100 * rate_goal,
               100 * share, share >= rate_goal ? "reached" : "not reached");
  }
  return share >= rate_goal ? 0 : 3;
}

int run(int argc, char** argv) {
  int ranks = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string help;
  const Options options = parse_options(argc, argv, help);
  if (print_help(help)) return 0;
  if (options.count_only) {
    if (rank == 0) print_count(options);
    return 0;
  }
  const Team team(options.grid.empty() ? nearly_square(ranks) : parse_grid(options.grid, ranks));
  check_json(team, options.json);
  const std::unique_ptr<Algorithm> algorithm = make(team, options);
  const Problem problem{options.algorithm,     options.timed.names, algorithm->description(),
                        algorithm->layout(),   ranks,               imbrex::worker_count(),
                        algorithm->times()};
  if (rank == 0) print_problem(problem, options);
  const std::vector<Run> runs = run_all(team, options, *algorithm);
  std::string wrong;
  if (rank == 0) {
    print_comparison(problem, runs);
    try {
      if (!options.json.empty()) write_json(options.json, problem, runs);
    } catch (const std::runtime_error& error) {
      wrong = error.what();
    }
  }
  fail_together(team.all(), wrong);
  return judge(team, options, runs, algorithm->residual_limit());
}

}  // namespace
}  // namespace tiled

int main(int argc, char** argv) {
  return tiled::run_program("tiled", argc, argv, &tiled::run);
}
