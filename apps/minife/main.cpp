// SPDX-License-Identifier: BSD-3-Clause
// minife: reads the command line, assembles and solves, checks and prints what came out.
// Exit codes: 0 well; 1 wrong input; 2 a solution that is wrong. All ranks exit alike.
#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "../sparse/options.hpp"
#include "../tiled/setup.hpp"
#include "series.hpp"
#include "solve.hpp"

namespace minife {
namespace {

constexpr double error_limit = 0.06;  // of the reference benchmark
constexpr int series_terms = 300;
constexpr double bytes_per_row = 27 * 12 + 4 + 6 * 8;  // of the matrix, and six vectors

struct Options : sparse::Options {
  double source = 1;
  int imbalance = 0;
};

Options parse_options(int argc, char** argv) {
  Options options{{.iterations = 200}};
  apps::CommandLine line("minife",
                         "Steady conduction in a brick of hexahedra over MPI ranks: assembles the "
                         "matrix of\n27 points and solves by conjugate gradients, as the benchmark "
                         "miniFE does.");
  add_options(line, kernel_names, options);
  line.number("--n", options.n, {1, 1024}, "Elements of a rank in each dimension");
  line.number("--iterations", options.iterations, {1, 1'000'000}, "");
  line.number("--source", options.source, {-1e6, 1e6},
              "Of heat, everywhere; the reference benchmark has 1");
  line.number("--imbalance", options.imbalance, {0, 400},
              "Percent by which the first ranks have more elements than an even share, as the "
              "reference benchmark's load_imbalance");
  parse(line, argc, argv, kernel_names, options);
  return options;
}

// Before anything large is allocated.
void check_size(const tiled::Team& team, const Options& line, int blocks) {
  const double edge = line.n + 3;  // with both layers, and the last rank's node
  const double rows = edge * edge * edge * (1 + line.imbalance / 100.0);
  if (line.n == 1 && team.size() == 1) {
    throw tiled::InputError("--n 1 on one rank has no node inside of the boundary: take 2 or more");
  }
  if (!line.timed.timed && 27 * rows / blocks > 0.8 * INT_MAX) {
    throw tiled::InputError(fmt::format("--n {}: a sub-block has more entries than an int counts; "
                                        "take more by --blocks", line.n));
  }
  tiled::check_memory(team.all(), rows * (line.timed.timed ? 6 * 8 : bytes_per_row),
                      fmt::format("--n {} needs", line.n), "fewer elements");
}

// Returns the distance of the solution at (1/2, 1/2, 1/2) from the series.
double error_of(double middle) {
  static const double expected = temperature(0.5, 0.5, 0.5, series_terms);
  return std::abs(middle - expected);
}

// `worst` becomes the largest error of all runs.
apps::Run run_once(const tiled::Team& team, const Options& line, const Problem& problem,
                   const Equations& equations, sparse::Variant variant,
                   double& worst) {
  Vectors vectors;
  const sparse::Meter meter;
  const Outcome mine = solve(equations, team.all(), variant, line.iterations, vectors);
  auto [run, progress] = meter.measured(team, variant, mine);
  double bytes = static_cast<double>(sparse::Halo(equations.brick, team.all()).bytes_sent());
  MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_DOUBLE, MPI_MAX, team.all());
  run.figures["port_bytes"] = bytes;  // a rank sends in an iteration, at most
  run.figures["iterations_needed"] = mine.iterations;
  const double middle = value_in_the_middle(problem, equations.brick, vectors.x);
  if (!line.timed.timed) {
    const double error = error_of(middle);
    run.right = error <= error_limit;  // not NaN either
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
    run.figures.update({{"residual", mine.residual}, {"middle", middle}, {"error", error}});
    run.text += fmt::format("   {} iterations, residual {:.1e}, error {:.4f}", mine.iterations,
                            mine.residual, error);
  }
  run.text += progress;
  return run;
}

int run_program(int argc, char** argv) {
  const int ranks = apps::ranks_of_all();
  const Options line = parse_options(argc, argv);
  const tiled::Team team({1, ranks});
  apps::check_writable(team.all(), "--json", line.json);
  const int blocks = line.blocks * std::max(1, imbrex::worker_count());
  check_size(team, line, blocks);
  sparse::BrickShape elements = sparse::grid_of_cubes(line.n, ranks, blocks);
  elements.imbalance = line.imbalance;
  const Problem problem{elements.points, line.source};
  const sparse::Brick brick(nodes_of(elements), team.rank());
  if (team.rank() == 0) sparse::print_head(team, problem.elements, "elements", brick);

  static constexpr int measured_points = 40;
  const tiled::KernelTimes times = find_times(team, line.timed, [&line] {
    return measure_kernels(std::min(line.n + 1, measured_points),
                           std::int64_t{line.n} * line.n * line.n);
  });
  if (team.rank() == 0 && line.timed.timed) {
    print_times(line.timed, times, "all points of a rank, by one worker");
  }
  System system;
  system.load.resize(brick.size());
  const double start = MPI_Wtime();
  if (!line.timed.timed) system = assemble(problem, brick);
  double assembly_s = MPI_Wtime() - start;
  MPI_Allreduce(MPI_IN_PLACE, &assembly_s, 1, MPI_DOUBLE, MPI_MAX, team.all());
  if (team.rank() == 0 && !line.timed.timed) fmt::print("assembled in {:.3f} s\n", assembly_s);
  std::fflush(stdout);

  nlohmann::json document = sparse::document_of("minife", team, line, times);
  document["elements"] = problem.elements;
  document["assembly_s"] = assembly_s;
  const Equations equations{brick, system, times_here(team, line.timed, times)};
  apps::Runs runs(line.variants, line.repetitions, team.rank() == 0);
  double worst = 0;
  runs.measure([&](const apps::Turn& turn) {
    return run_once(team, line, problem, equations, sparse::variant_of(line.variants[turn.variant]),
                    worst);
  });
  if (team.rank() == 0) {
    sparse::print_gains(runs);
    if (!runs.right()) {
      fmt::print(stderr, "minife: in the middle the solution is {:.4f} away from the series, and "
                 "{} are allowed; perhaps it needs more --iterations\n", worst, error_limit);
    }
    document["runs"] = runs.figures();
    apps::write_json(line.json, document);
  }
  return runs.right() ? 0 : 2;
}

}  // namespace
}  // namespace minife

int main(int argc, char** argv) {
  return tiled::run_program("minife", argc, argv, &minife::run_program);
}
