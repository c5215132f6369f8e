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
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../sparse/options.hpp"
#include "../tiled/activity.hpp"
#include "../tiled/setup.hpp"
#include "validity.hpp"

namespace hpcg {
namespace {

constexpr int measured_points = 40;  // in each dimension, at most

sparse::Options parse_options(int argc, char** argv, std::string& help) {
  sparse::Options line{.iterations = 50};
  CLI::App app("Conjugate gradients with multigrid on the operator of 27 points over MPI ranks,\n"
               "as the benchmark HPCG does.", "hpcg");
  add_options(app, kernel_names, line);
  app.add_option("--n", line.n, "Points of a rank in each dimension, a multiple of 8")
      ->check(CLI::Range(8, 1024))
      ->capture_default_str();
  app.add_option("--iterations", line.iterations,
                 "Of the reference, whose residual the variants must reach")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  if (!apps::parse(app, argc, argv, help)) return line;
  if (line.n % divisor != 0) {
    throw tiled::InputError(fmt::format("--n {} is not a multiple of {}: the grid is halved three "
                                        "times; take {} or {}", line.n, divisor,
                                        line.n / divisor * divisor,
                                        (line.n / divisor + 1) * divisor));
  }
  line.timed = read_timed(kernel_names, line.timed_text);
  return line;
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

struct Run : sparse::Figures {
  double rate;          // operations of the reference's iterations in a second; 0: kernels sleep
  int iterations;
  double residual;  // relative
};

struct Goal {
  double operations;  // of the reference
  Limits limits;
  double residual;    // the reference's
};

Run run_once(const tiled::Team& team, const Problem& problem, const std::vector<double>& side,
             const Goal& goal, const sparse::NamedVariant& variant) {
  Solver solver(problem, variant.second);
  std::vector<double> solution;
  const sparse::Meter meter;
  const Outcome mine = solver.solve(side, goal.limits, solution);
  const sparse::Figures figures = meter.figures(team, variant, mine);
  return {figures, problem.sleep() ? 0 : goal.operations / figures.seconds, mine.iterations,
          mine.residual};
}

void print_run(const Run& run, int number, bool sleep) {
  sparse::print_run(run, number,
                    sleep ? "" : fmt::format("   {:.3f} GFLOP/s, {} iterations, residual {:.6e}",
                                             1e-9 * run.rate, run.iterations, run.residual));
}

nlohmann::json to_json(const Run& run, bool sleep) {
  nlohmann::json json = sparse::to_json(run);
  json["iterations"] = run.iterations;
  if (!sleep) {
    json["residual"] = run.residual;
    json["flops"] = run.rate;
  }
  return json;
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

void test_operator(Problem& problem, const sparse::NamedVariant& variant, Verdict& verdict,
                   nlohmann::json& document) {
  const Convergence convergence = test_convergence(problem, variant.second);
  const Symmetry symmetry = test_symmetry(problem, variant.second);
  if (verdict.first_rank) {
    fmt::print("{}: {} iterations without and {} with multigrid on the exaggerated diagonal; "
               "departure from symmetry {:.1e} of A, {:.1e} of multigrid\n", variant.first,
               convergence.plain, convergence.preconditioned, symmetry.multiply, symmetry.cycle);
    std::fflush(stdout);
  }
  verdict.expect(convergence.passed(),
                 fmt::format("{}: on the exaggerated diagonal it needs {} iterations, 12 are "
                             "allowed, and {} with multigrid, 2 are allowed", variant.first,
                             convergence.plain, convergence.preconditioned));
  verdict.expect(symmetry.passed(),
                 fmt::format("{}: departures from symmetry of {} by A and {} by multigrid; 1 is "
                             "allowed", variant.first, symmetry.multiply, symmetry.cycle));
  document["validity"].push_back({{"variant", variant.first},
                                  {"plain_iterations", convergence.plain},
                                  {"preconditioned_iterations", convergence.preconditioned},
                                  {"symmetry_multiply", symmetry.multiply},
                                  {"symmetry_multigrid", symmetry.cycle}});
}

// All repetitions; the relative residuals must be the reference's, and each other's.
void run_all(const tiled::Team& team, const sparse::Options& line, Problem& problem,
             const Goal& goal, Verdict& verdict, nlohmann::json& document) {
  const bool sleep = problem.sleep();
  const std::vector<double> side = right_side(problem.finest());
  std::map<std::string, std::vector<double>> seconds;
  std::map<std::string, std::vector<double>> residuals;
  int number = 0;
  for (int repetition = 0; repetition < line.repetitions; ++repetition) {
    for (const sparse::NamedVariant& variant : sparse::variants().at(line.variant)) {
      const Run run = run_once(team, problem, side, goal, variant);
      seconds[run.variant].push_back(run.seconds);
      residuals[run.variant].push_back(run.residual);
      if (team.rank() == 0) print_run(run, ++number, sleep);
      document["runs"].push_back(to_json(run, sleep));
      if (sleep) continue;
      verdict.expect(run.residual <= goal.residual * (1 + residual_slack),
                     fmt::format("{}: after {} iterations the residual is {:.9e}; the reference "
                                 "has {:.9e}", run.variant, run.iterations, run.residual,
                                 goal.residual));
    }
  }
  for (const auto& [variant, values] : residuals) {
    const double variance = variance_of(values);
    verdict.expect(variance < variance_limit,
                   fmt::format("{}: the residuals of {} runs have a variance of {}; {} is allowed",
                               variant, values.size(), variance, variance_limit));
  }
  if (team.rank() == 0) sparse::print_gains(seconds);
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
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::string help;
  const sparse::Options line = parse_options(argc, argv, help);
  if (tiled::print_help(help)) return 0;
  const tiled::Team team({1, ranks});
  check_json(team, line.json);
  check_size(team, line);
  sparse::BrickShape shape{{}, sparse::nearly_cubic(ranks),
                           line.blocks * std::max(1, imbrex::worker_count())};
  for (std::size_t d = 0; d < 3; ++d) shape.points[d] = line.n * shape.ranks[d];

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
    if (sleep) sparse::print_sleep(kernel_names, line.timed, times);
  }
  nlohmann::json document = describe(team, line, shape, problem, times);
  Verdict verdict{.first_rank = team.rank() == 0};
  if (!sleep) {
    document["reference_residual"] = goal.residual;
    for (const sparse::NamedVariant& variant : sparse::variants().at(line.variant)) {
      test_operator(problem, variant, verdict, document);
    }
    goal.limits.iterations = find_iterations(team, line, problem, goal.residual);
  }
  run_all(team, line, problem, goal, verdict, document);
  if (team.rank() == 0 && !sleep && verdict.passed) fmt::print("all validity tests passed\n");
  document["valid"] = verdict.passed;
  write(document, team, line);
  return verdict.passed ? 0 : 2;
}

}  // namespace
}  // namespace hpcg

int main(int argc, char** argv) {
  return tiled::run_program("hpcg", argc, argv, &hpcg::run_program);
}
