// SPDX-License-Identifier: BSD-3-Clause
// cholesky: reads the command line, makes the matrix, runs the variants in turn, reports.
// Exit codes: 0 well; 1 wrong input, or a matrix that is not positive definite; 2 a residual that
// is too large; 3 --check-rate not reached. The same on every rank.
#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "../tiled/setup.hpp"
#include "geo/kriging.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "report.hpp"

namespace cholesky {
namespace {

constexpr double residual_limit = 10;
constexpr double rate_goal = 0.8;

// The sites of a file, read by rank 0 alone. Collective.
std::vector<Site> load_sites(const Team& team, const Options& options) {
  std::vector<Site> sites;
  std::string wrong;
  if (team.rank() == 0) {
    try {
      sites = parse_sites(read_file(options.locations), options.column);
    } catch (const FileError& error) {
      wrong = fmt::format("{}: {}", options.locations, error.what());
    }
  }
  fail_together(team.all(), wrong);
  auto count = static_cast<std::int64_t>(sites.size());
  MPI_Bcast(&count, 1, MPI_INT64_T, 0, team.all());
  sites.resize(static_cast<std::size_t>(count));
  MPI_Bcast(sites.data(), static_cast<int>(count * sizeof(Site)), MPI_BYTE, 0, team.all());
  return sites;
}

// Without a nugget, two known places at one position make the matrix singular, which rounding may
// hide. Every rank finds the same.
void check_positions(const std::vector<Site>& sites, const Split& split, const Options& options) {
  if (options.model.nugget > 0) return;
  std::vector<std::size_t> order = split.known;
  const auto position = [&](std::size_t i) {
    return std::pair(sites[i].latitude, sites[i].longitude);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return position(a) < position(b); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (position(order[i - 1]) != position(order[i])) continue;
    throw InputError(fmt::format("{}: lines {} and {} have the same position, so that the matrix "
                                 "is singular without a nugget; give one by --nugget",
                                 options.locations, sites[order[i - 1]].line,
                                 sites[order[i]].line));
  }
}

// A matrix with all that is known about it.
struct Input {
  std::vector<Site> sites;
  Split split;
  std::unique_ptr<Covariance> covariance;
  std::unique_ptr<Source> source;
  std::int64_t n = 0;
  std::string description;
};

Input make_input(const Team& team, const Options& options) {
  Input input;
  if (options.locations.empty()) {
    input.n = options.random;
    input.source = std::make_unique<RandomSource>(input.n, options.seed, options.bad_minor);
    input.description = fmt::format("random, {0} x {0}, seed {1}", input.n, options.seed);
    return input;
  }
  const CovarianceModel& model = options.model;
  input.sites = load_sites(team, options);
  input.split = split(input.sites, options.holdout);
  if (input.split.known.empty()) throw InputError("--holdout 1 leaves nothing to predict from");
  check_positions(input.sites, input.split, options);
  input.n = static_cast<std::int64_t>(input.split.known.size());
  input.covariance = std::make_unique<Covariance>(model, input.sites);
  input.source =
      std::make_unique<CovarianceSource>(*input.covariance, input.split.known, model.nugget);
  input.description = fmt::format(
      "covariance of {0} places of {1}, {0} x {0}\n          Matern, smoothness {2}, range {3} km "
      "({4} distance), sill {5}, nugget {6}", input.n, options.locations, model.smoothness,
      model.range_km, model.distance == Distance::chordal ? "chordal" : "great-circle", model.sill,
      model.nugget);
  return input;
}

std::vector<Run> run_all(const Team& team, const Options& options, const Kernels& kernels,
                         const Input& input, TiledMatrix& matrix) {
  std::vector<Run> runs;
  Stopwatch stopwatch(team, options, kernels);
  for (int repetition = 0; repetition < options.repeat; ++repetition) {
    for (const Variant variant : options.variants) {
      Run run = stopwatch.run(variant, matrix, *input.source);
      if (run.bad_minor != 0) {
        throw InputError(fmt::format(
            "the matrix is not positive definite: its leading minor of order {} is not positive{}",
            run.bad_minor, options.locations.empty() ? "" : "; a larger --nugget makes it so"));
      }
      if (!input.sites.empty()) {
        run.kriging = krige(team, matrix, options.model, input.sites, input.split);
      }
      runs.push_back(std::move(run));
      if (team.rank() == 0) print_run(static_cast<int>(runs.size()), runs.back());
    }
  }
  return runs;
}

int judge(const Team& team, const Options& options, const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (!run.residual || run.residual->value <= residual_limit) continue;  // false for NaN too
    if (team.rank() == 0) fmt::print(stderr, "cholesky: a residual is above {}\n", residual_limit);
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

// What --count-only prints. Throws InputError.
void print_count(const Options& options) {
  constexpr std::int64_t tiles_max = 4096;  // counted within seconds
  const int tile = options.tile != 0 ? options.tile : Options::default_tile(options.n);
  const std::int64_t tiles = options.n / tile;
  if (tiles == 0 || tiles > tiles_max) {
    throw InputError(fmt::format("--count-only: {} rows make {} whole tiles of {} a side; 1 to {} "
                                 "can be counted", options.n, tiles, tile, tiles_max));
  }
  const Grid grid = options.grid.empty() ? nearly_square(options.ranks)
                                         : parse_grid(options.grid, options.ranks);
  const TaskCount count = count_tasks({tiles * tile, tile, grid});
  fmt::print("tiles {0} x {0} of {1}: floor({2} / {1}) a side, whole tiles only\n", tiles, tile,
             options.n);
  fmt::print("ranks {} in a grid of {} x {}\n", options.ranks, grid.rows, grid.columns);
  fmt::print("potrf {}\ntrsm {}\nsyrk {}\ngemm {}\nsend {}\nreceive {}\n", count.potrf, count.trsm,
             count.syrk, count.gemm, count.send, count.receive);
  fmt::print("computation {}\ncommunication {}\n", count.computation(), count.communication());
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
  const Input input = make_input(team, options);
  const int tile = options.tile != 0 ? options.tile
                   : static_cast<int>(std::min<std::int64_t>(Options::default_tile(input.n),
                                                             input.n));
  const Layout layout{input.n, tile, team.grid()};
  check_layout(team, layout, 1);
  const std::unique_ptr<TiledMatrix> matrix = allocate(team, layout);

  const KernelTimes times =
      find_times(team, options.timed, [tile] { return measure_kernels(tile); });
  const Kernels kernels(times_here(team, options.timed, times), tile);
  const Problem problem{input.description, layout, ranks, imbrex::worker_count(), times};
  if (rank == 0) print_problem(problem, options);
  const std::vector<Run> runs = run_all(team, options, kernels, input, *matrix);
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
  return judge(team, options, runs);
}

}  // namespace
}  // namespace cholesky

int main(int argc, char** argv) {
  return tiled::run_program("cholesky", argc, argv, &cholesky::run);
}
