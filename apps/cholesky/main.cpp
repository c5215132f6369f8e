// SPDX-License-Identifier: BSD-3-Clause
// cholesky: reads the command line, makes the matrix, runs the variants in turn, reports.
// Exit codes: 0 well; 1 wrong input, or a matrix that is not positive definite; 2 a residual that
// is too large; 3 --check-rate not reached. The same on every rank.
#include <fmt/format.h>
#include <imbrex/detail/waist.hpp>
#include <imbrex/imbrex.hpp>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <numeric>

#include "geo/kriging.hpp"
#include "kernels.hpp"
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

// Throws InputError for what cannot work, the same on every rank. Collective.
void check_layout(const Team& team, const Options& options, const Layout& layout) {
  if (options.tile > layout.n) {
    throw InputError(fmt::format("--tile {}: larger than the matrix, which has {} rows",
                                 options.tile, layout.n));
  }
  if (layout.tile > 32768) {
    throw InputError(fmt::format("--tile {}: at most 32768, so that a tile fits into one message",
                                 layout.tile));
  }
  void* value = nullptr;
  int found = 0;
  MPI_Comm_get_attr(team.all(), MPI_TAG_UB, &value, &found);
  const std::int64_t tags = found != 0 ? *static_cast<int*>(value) : 32767;
  const std::int64_t tiles = (layout.n + layout.tile - 1) / layout.tile;
  if (tiles > 65535 || tiles * (tiles + 1) / 2 > tags) {
    throw InputError(fmt::format("{} rows in tiles of {} are {} x {} tiles, more than this MPI has "
                                 "tags for ({}); take larger tiles by --tile", layout.n,
                                 layout.tile, tiles, tiles, tags));
  }
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(team.all(), MPI_COMM_TYPE_SHARED, team.rank(), MPI_INFO_NULL, &node);
  const auto mine = static_cast<double>(TiledMatrix::bytes(layout, team.rank()));
  double needed = 0;
  MPI_Allreduce(&mine, &needed, 1, MPI_DOUBLE, MPI_SUM, node);
  MPI_Comm_free(&node);
  const double present = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  constexpr double gib = 1024.0 * 1024 * 1024;
  fail_together(team.all(),
                needed <= 0.9 * present
                    ? ""
                    : fmt::format("{} rows need {:.1f} GiB on one node, which has {:.1f} GiB; take "
                                  "fewer rows, or more nodes", layout.n, needed / gib,
                                  present / gib));
}

std::unique_ptr<TiledMatrix> allocate(const Team& team, const Layout& layout) {
  std::unique_ptr<TiledMatrix> matrix;
  std::string wrong;
  try {
    matrix = std::make_unique<TiledMatrix>(layout, team.rank());
  } catch (const std::bad_alloc&) {
    wrong = fmt::format("rank {} cannot allocate its {:.1f} MiB of the matrix", team.rank(),
                        static_cast<double>(TiledMatrix::bytes(layout, team.rank())) / (1 << 20));
  }
  fail_together(team.all(), wrong);
  return matrix;
}

void check_json(const Team& team, const Options& options) {
  std::string wrong;
  if (team.rank() == 0 && !options.json.empty() && !std::ofstream(options.json, std::ios::app)) {
    wrong = fmt::format("--json {}: cannot be written", options.json);
  }
  fail_together(team.all(), wrong);
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

std::vector<Run> run_all(const Team& team, const Options& options, const Input& input,
                         TiledMatrix& matrix) {
  std::vector<Run> runs;
  Stopwatch stopwatch(team, options);
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
    if (run.residual.value <= residual_limit) continue;  // false for NaN too
    if (team.rank() == 0) fmt::print(stderr, "cholesky: a residual is above {}\n", residual_limit);
    return 2;
  }
  if (!options.check_rate || options.variants.back() != Variant::tasks) return 0;
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
  if (!help.empty()) {
    if (rank == 0) fmt::print("{}", help);
    return 0;
  }
  const Team team(options.grid.empty() ? nearly_square(ranks) : parse_grid(options.grid, ranks));
  check_json(team, options);
  const Input input = make_input(team, options);
  const int tile = options.tile != 0 ? options.tile
                   : static_cast<int>(std::min<std::int64_t>(Options::default_tile(input.n),
                                                             input.n));
  const Layout layout{input.n, tile, team.grid()};
  check_layout(team, options, layout);
  const std::unique_ptr<TiledMatrix> matrix = allocate(team, layout);

  const Problem problem{input.description, layout, ranks, imbrex::worker_count()};
  if (rank == 0) print_problem(problem, options);
  const std::vector<Run> runs = run_all(team, options, input, *matrix);
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
  cholesky::use_one_blas_thread();
  imbrex::detail::want_times();  // they are part of what is reported
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int code = 1;
  try {
    code = cholesky::run(argc, argv);
  } catch (const cholesky::InputError& error) {  // on every rank
    if (rank == 0) fmt::print(stderr, "cholesky: {}\n", error.what());
  } catch (const std::exception& error) {  // perhaps on this rank alone: others may wait for us
    fmt::print(stderr, "cholesky: rank {}: {}\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return code;
}
