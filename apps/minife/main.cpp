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
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../sparse/options.hpp"
#include "../tiled/activity.hpp"
#include "../tiled/setup.hpp"
#include "series.hpp"
#include "solve.hpp"

namespace minife {
namespace {

constexpr double error_limit = 0.06;  // of the reference benchmark
constexpr int series_terms = 300;
constexpr double bytes_per_row = 27 * 12 + 4 + 6 * 8;  // of the matrix, and six vectors

struct CommandLine : sparse::Options {
  double source = 1;
};

CommandLine parse_options(int argc, char** argv, std::string& help) {
  CommandLine line{{.iterations = 200}};
  CLI::App app("Steady conduction in a brick of hexahedra over MPI ranks: assembles the matrix of\n"
               "27 points and solves by conjugate gradients, as the benchmark miniFE does.",
               "minife");
  add_options(app, kernel_names, line);
  app.add_option("--n", line.n, "Elements of a rank in each dimension")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--iterations", line.iterations)
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--source", line.source, "Of heat, everywhere; the reference benchmark has 1")
      ->check(CLI::Range(-1e6, 1e6))
      ->capture_default_str();
  if (!apps::parse(app, argc, argv, help)) return line;
  line.timed = read_timed(kernel_names, line.timed_text);
  if (!std::isfinite(line.source)) throw tiled::InputError("--source: must be a finite number");
  return line;
}

// Before anything large is allocated.
void check_size(const tiled::Team& team, const CommandLine& line, int blocks) {
  const double edge = line.n + 3;  // with both layers, and the last rank's node
  const double rows = edge * edge * edge;
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

struct Run : sparse::Figures {
  double bytes;  // a rank sends in an iteration, at most
  int iterations;
  double residual;
  double middle;  // the solution at (1/2, 1/2, 1/2)
};

Run run_once(const tiled::Team& team, const CommandLine& line, const Problem& problem,
             const Equations& equations, const sparse::NamedVariant& variant) {
  Vectors vectors;
  const sparse::Meter meter;
  const Outcome mine = solve(equations, team.all(), variant.second, line.iterations, vectors);
  const sparse::Figures figures = meter.figures(team, variant, mine);
  double bytes = static_cast<double>(sparse::Halo(equations.brick, team.all()).bytes_sent());
  MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_DOUBLE, MPI_MAX, team.all());
  return {figures, bytes, mine.iterations, mine.residual,
          value_in_the_middle(problem, equations.brick, vectors.x)};
}

double error_of(const Run& run) {
  static const double expected = temperature(0.5, 0.5, 0.5, series_terms);
  return std::abs(run.middle - expected);
}

void print_run(const Run& run, int number, bool sleep) {
  sparse::print_run(run, number,
                    sleep ? "" : fmt::format("   {} iterations, residual {:.1e}, error {:.4f}",
                                             run.iterations, run.residual, error_of(run)));
}

nlohmann::json to_json(const Run& run, bool sleep) {
  nlohmann::json json = sparse::to_json(run);
  json["port_bytes"] = run.bytes;
  json["iterations_needed"] = run.iterations;
  if (!sleep) {
    json["residual"] = run.residual;
    json["middle"] = run.middle;
    json["error"] = error_of(run);
  }
  return json;
}

// The exit code.
int run_all(const tiled::Team& team, const CommandLine& line, const Problem& problem,
            const Equations& equations, nlohmann::json& document) {
  const bool sleep = line.timed.timed;
  std::map<std::string, std::vector<double>> seconds;
  double worst = 0;
  int number = 0;
  for (int repetition = 0; repetition < line.repetitions; ++repetition) {
    for (const auto& variant : sparse::variants().at(line.variant)) {
      const Run run = run_once(team, line, problem, equations, variant);
      if (!sleep) worst = std::isnan(run.middle) ? HUGE_VAL : std::max(worst, error_of(run));
      seconds[run.variant].push_back(run.seconds);
      if (team.rank() == 0) print_run(run, ++number, sleep);
      document["runs"].push_back(to_json(run, sleep));
    }
  }
  const bool right = worst <= error_limit;
  if (team.rank() == 0) {
    sparse::print_gains(seconds);
    if (!right) {
      fmt::print(stderr, "minife: in the middle the solution is {:.4f} away from the series, and "
                 "{} are allowed; perhaps it needs more --iterations\n", worst, error_limit);
    }
  }
  return right ? 0 : 2;
}

int run_program(int argc, char** argv) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::string help;
  const CommandLine line = parse_options(argc, argv, help);
  if (tiled::print_help(help)) return 0;
  const tiled::Team team({1, ranks});
  check_json(team, line.json);
  const int blocks = line.blocks * std::max(1, imbrex::worker_count());
  check_size(team, line, blocks);
  const sparse::Point grid = sparse::nearly_cubic(ranks);
  Problem problem{{}, line.source};
  for (std::size_t d = 0; d < 3; ++d) problem.elements[d] = line.n * grid[d];
  const sparse::Brick brick(nodes_of(problem, grid, blocks), team.rank());
  if (team.rank() == 0) sparse::print_head(team, problem.elements, "elements", brick);

  static constexpr int measured_points = 40;
  const tiled::KernelTimes times = find_times(team, line.timed, [&line] {
    return measure_kernels(std::min(line.n + 1, measured_points),
                           std::int64_t{line.n} * line.n * line.n);
  });
  if (team.rank() == 0 && line.timed.timed) sparse::print_sleep(kernel_names, line.timed, times);
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
  const int code = run_all(team, line, problem,
                           {brick, system, times_here(team, line.timed, times)}, document);
  write(document, team, line);
  return code;
}

}  // namespace
}  // namespace minife

int main(int argc, char** argv) {
  return tiled::run_program("minife", argc, argv, &minife::run_program);
}
