// SPDX-License-Identifier: BSD-3-Clause
// hpcg: reads the command line, runs the reference, the validity tests and the variants, and prints
// what came out. Exit codes: 0 well; 1 wrong input; 2 a validity test has failed. All ranks
// exit alike.
#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "../sparse/options.hpp"
#include "../tiled/setup.hpp"
#include "validity.hpp"

namespace hpcg {
namespace {

constexpr int measured_points = 40;  // in each dimension, at most

sparse::Options parse_options(int argc, char** argv) {
  sparse::Options options{.iterations = 50};
  apps::CommandLine line("hpcg",
                         "Conjugate gradients with multigrid on the operator of 27 points over MPI "
                         "ranks,\nas the benchmark HPCG does.");
  add_options(line, kernel_names, options);
  line.number("--n", options.n, {8, 1024}, "Points of a rank in each dimension, a multiple of 8");
  line.number("--iterations", options.iterations, {1, 100'000},
              "Of the reference, whose residual the variants must reach");
  parse(line, argc, argv, kernel_names, options);
  if (options.n % divisor != 0) {
    throw tiled::InputError(fmt::format("--n {} is not a multiple of {}: the grid is halved three "
                                        "times; take {} or {}", options.n, divisor,
                                        options.n / divisor * divisor,
                                        (options.n / divisor + 1) * divisor));
  }
  return options;
}

// Before anything large is allocated.
void check_size(const tiled::Team& team, const sparse::Options& line) {
  const double edge = line.n + 2;  // with the layers
  const double rows = edge * edge * edge;
  // The reference has one sub-block.
  if (!line.timed.timed && 27 * rows > 0.95 * INT_MAX) {
    throw tiled::InputError(fmt::format("--n {}: a rank has more entries than an int counts; take "
                                        "fewer points, and more ranks", line.n));
  }
  constexpr double vectors = 10 * 8;
  constexpr double entries = 27 * 12 + 12;  // of the matrix, with what a sweep needs of each row
  constexpr double levels = 8.0 / 7;
  tiled::check_memory(team.all(),
                      levels * rows * (line.timed.timed ? vectors : vectors + entries),
                      fmt::format("--n {} needs", line.n), "fewer points");
}

struct Goal {
  double operations;  // of the reference
  Limits limits;
  double residual;    // the reference's
};

// The rate counts the operations of the reference's iterations.
apps::Run run_once(const tiled::Team& team, const Problem& problem, const Goal& goal,
                   sparse::Variant variant, Outcome& mine) {
  Solver solver(problem, variant);
  std::vector<double> solution;
  const std::vector<double> side = right_side(problem.finest());
  const sparse::Meter meter;
  mine = solver.solve(side, goal.limits, solution);
  auto [run, progress] = meter.measured(team, variant, mine);
  run.figures["iterations"] = mine.iterations;
  if (!problem.sleep()) {
    const double rate = goal.operations / run.seconds;
    run.figures.update({{"residual", mine.residual}, {"flops", rate}});
    run.text += fmt::format("   {:.3f} GFLOP/s, {} iterations, residual {:.6e}", 1e-9 * rate,
                            mine.iterations, mine.residual);
  }
  run.text += progress;
  return run;
}

// The failures of the validity tests, which are gathered and printed at the end.
struct Verdict {
  bool passed = true;
  bool first_rank = false;

  void expect(bool well, const std::string& what) {
    if (well) return;
    passed = false;
    if (first_rank) fmt::print(stderr, "hpcg: {}\n", what);
  }
};

void test_operator(Problem& problem, const std::string& name, Verdict& verdict,
                   nlohmann::json& document) {
  const sparse::Variant variant = sparse::variant_of(name);
  const Convergence convergence = test_convergence(problem, variant);
  const Symmetry symmetry = test_symmetry(problem, variant);
  if (verdict.first_rank) {
    fmt::print("{}: {} iterations without and {} with multigrid on the exaggerated diagonal; "
               "departure from symmetry {:.1e} of A, {:.1e} of multigrid\n", name,
               convergence.plain, convergence.preconditioned, symmetry.multiply, symmetry.cycle);
    std::fflush(stdout);
  }
  verdict.expect(convergence.passed(),
                 fmt::format("{}: on the exaggerated diagonal it needs {} iterations, 12 are "
                             "allowed, and {} with multigrid, 2 are allowed", name,
                             convergence.plain, convergence.preconditioned));
  verdict.expect(symmetry.passed(),
                 fmt::format("{}: departures from symmetry of {} by A and {} by multigrid; 1 is "
                             "allowed", name, symmetry.multiply, symmetry.cycle));
  document["validity"].push_back({{"variant", name},
                                  {"plain_iterations", convergence.plain},
                                  {"preconditioned_iterations", convergence.preconditioned},
                                  {"symmetry_multiply", symmetry.multiply},
                                  {"symmetry_multigrid", symmetry.cycle}});
}

// All repetitions; the relative residuals must be the reference's, and each other's.
void run_all(const tiled::Team& team, const sparse::Options& line, Problem& problem,
             const Goal& goal, Verdict& verdict, nlohmann::json& document) {
  std::vector<std::vector<double>> residuals(line.variants.size());
  apps::Runs runs(line.variants, line.repetitions, team.rank() == 0);
  runs.measure([&](const apps::Turn& turn) {
    const std::string& name = line.variants[turn.variant];
    Outcome mine;
    apps::Run run = run_once(team, problem, goal, sparse::variant_of(name), mine);
    residuals[turn.variant].push_back(mine.residual);
    verdict.expect(problem.sleep() || mine.residual <= goal.residual * (1 + residual_slack),
                   fmt::format("{}: after {} iterations the residual is {:.9e}; the reference has "
                               "{:.9e}", name, mine.iterations, mine.residual, goal.residual));
    return run;
  });
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const double variance = variance_of(residuals[i]);
    verdict.expect(variance < variance_limit,
                   fmt::format("{}: the residuals of {} runs have a variance of {}; {} is allowed",
                               line.variants[i], residuals[i].size(), variance, variance_limit));
  }
  if (team.rank() == 0) sparse::print_gains(runs);
  document["runs"] = runs.figures();
}

// Returns the rate of the plain loop over one sub-block on each rank.
double run_reference(const tiled::Team& team, const sparse::Options& line,
                     sparse::BrickShape shape) {
  shape.blocks = 1;
  const Problem problem(shape, team.all(), {});
  Solver solver(problem, Variant::blocking);
  std::vector<double> solution;
  const Outcome outcome = solver.solve(right_side(problem.finest()),
                                       {.iterations = line.iterations}, solution);
  if (team.rank() == 0) {
    fmt::print("reference: {} iterations in {:.3f} s on one worker a rank, residual {:.6e}\n",
               line.iterations, outcome.seconds, outcome.residual);
    std::fflush(stdout);
  }
  return std::max(outcome.residual, residual_floor);
}

// Returns how many iterations reach the reference's residual; a run then does as many.
int find_iterations(const tiled::Team& team, const sparse::Options& line, const Problem& problem,
                    double residual) {
  constexpr int times_more = 10;
  Solver solver(problem, Variant::tasks);
  std::vector<double> solution;
  const Limits limits{.iterations = times_more * line.iterations,
                      .tolerance = residual * (1 + residual_slack)};
  const int needed = solver.solve(right_side(problem.finest()), limits, solution).iterations;
  if (team.rank() == 0) {
    fmt::print("sub-blocks need {} iterations for it\n", needed);
    std::fflush(stdout);
  }
  return needed;
}

nlohmann::json describe(const tiled::Team& team, const sparse::Options& line,
                        const sparse::BrickShape& shape, const Problem& problem,
                        const tiled::KernelTimes& times) {
  double port_bytes = static_cast<double>(bytes_sent(problem));
  MPI_Allreduce(MPI_IN_PLACE, &port_bytes, 1, MPI_DOUBLE, MPI_MAX, team.all());
  nlohmann::json document = sparse::document_of("hpcg", team, line, times);
  document["points"] = shape.points;
  document["port_bytes"] = port_bytes;  // a rank sends in an iteration, at most
  document["validity"] = nlohmann::json::array();
  return document;
}

int run_program(int argc, char** argv) {
  const int ranks = apps::ranks_of_all();
  const sparse::Options line = parse_options(argc, argv);
  const tiled::Team team({1, ranks});
  apps::check_writable(team.all(), "--json", line.json);
  check_size(team, line);
  const sparse::BrickShape shape = sparse::grid_of_cubes(
      line.n, ranks, line.blocks * std::max(1, imbrex::worker_count()));

  const tiled::KernelTimes times = find_times(team, line.timed, [&line] {
    return measure_kernels(std::min(line.n, measured_points),
                           std::int64_t{line.n} * line.n * line.n);
  });
  Goal goal{operations_of(shape.points, line.iterations), {.iterations = line.iterations}, 0};
  const bool sleep = line.timed.timed;
  if (!sleep) goal.residual = run_reference(team, line, shape);
  Problem problem(shape, team.all(), times_here(team, line.timed, times));
  if (team.rank() == 0) {
    sparse::print_head(team, shape.points, "points", problem.finest().brick);
    if (sleep) print_times(line.timed, times, "all points of a rank, by one worker");
  }
  nlohmann::json document = describe(team, line, shape, problem, times);
  Verdict verdict{.first_rank = team.rank() == 0};
  if (!sleep) {
    document["reference_residual"] = goal.residual;
    for (const std::string& variant : line.variants) {
      test_operator(problem, variant, verdict, document);
    }
    goal.limits.iterations = find_iterations(team, line, problem, goal.residual);
  }
  run_all(team, line, problem, goal, verdict, document);
  if (team.rank() == 0 && !sleep && verdict.passed) fmt::print("all validity tests passed\n");
  document["valid"] = verdict.passed;
  if (team.rank() == 0) apps::write_json(line.json, document);
  return verdict.passed ? 0 : 2;
}

}  // namespace
}  // namespace hpcg

int main(int argc, char** argv) {
  return tiled::run_program("hpcg", argc, argv, &hpcg::run_program);
}
