// SPDX-License-Identifier: BSD-3-Clause
// Cholesky as the program runs it: its input, random or of places; what is done with the factor;
// and the numbers of its tasks.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>

#include "../cholesky/factor.hpp"
#include "../cholesky/geo/kriging.hpp"
#include "../cholesky/solve.hpp"
#include "algorithm.hpp"

namespace tiled {
namespace {

using cholesky::Site;

// The sites of a file, read by rank 0 alone. Collective.
std::vector<Site> load_sites(const Team& team, const Options& options) {
  std::vector<Site> sites;
  std::string wrong;
  if (team.rank() == 0) {
    try {
      sites = cholesky::parse_sites(cholesky::read_file(options.locations), options.column);
    } catch (const cholesky::FileError& error) {
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
void check_positions(const std::vector<Site>& sites, const cholesky::Split& split,
                     const Options& options) {
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

// A matrix with all that is known about it; `source` refers to the other members.
struct Input {
  std::vector<Site> sites;
  cholesky::Split split;
  std::unique_ptr<cholesky::Covariance> covariance;
  std::unique_ptr<Source> source;
  std::int64_t n = 0;
  std::string description;
};

std::unique_ptr<Input> make_input(const Team& team, const Options& options) {
  auto input = std::make_unique<Input>();
  if (options.locations.empty()) {
    input->n = options.random;
    input->source = std::make_unique<RandomSource>(input->n, options.seed, options.bad_minor);
    input->description = fmt::format("random, {0} x {0}, seed {1}", input->n, options.seed);
    return input;
  }
  const cholesky::CovarianceModel& model = options.model;
  input->sites = load_sites(team, options);
  input->split = split(input->sites, options.holdout);
  if (input->split.known.empty()) throw InputError("--holdout 1 leaves nothing to predict from");
  check_positions(input->sites, input->split, options);
  input->n = static_cast<std::int64_t>(input->split.known.size());
  input->covariance = std::make_unique<cholesky::Covariance>(model, input->sites);
  input->source = std::make_unique<cholesky::CovarianceSource>(*input->covariance,
                                                               input->split.known, model.nugget);
  input->description = fmt::format(
      "covariance of {0} places of {1}, {0} x {0}\n          Matern, smoothness {2}, range {3} km "
      "({4} distance), sill {5}, nugget {6}", input->n, options.locations, model.smoothness,
      model.range_km, model.distance == cholesky::Distance::chordal ? "chordal" : "great-circle",
      model.sill, model.nugget);
  return input;
}

class Cholesky : public Algorithm {
 public:
  Cholesky(const Team& team, const Options& options, std::unique_ptr<Input> input)
      : Algorithm(team, options, {input->n, options.tile_of(input->n), team.grid()}, 1,
                  &cholesky::measure_kernels),
        input_(std::move(input)),
        kernels_(times_here(), layout().tile),
        matrix_(allocate(team, layout())) {}

  [[nodiscard]] std::string description() const override { return input_->description; }
  [[nodiscard]] double operations() const override {
    const auto n = static_cast<double>(input_->n);
    return n * n * n / 3 + n * n / 2 + n / 6;
  }
  [[nodiscard]] double residual_limit() const override { return 10; }

  void fill() override { tiled::fill(*matrix_, *input_->source); }
  [[nodiscard]] std::int64_t run(Variant variant, TaskUse& use) override {
    const TaskOptions& tasks = options_.tasks;
    switch (variant) {
      case Variant::fork_join: return cholesky::factor_fork_join(team_, *matrix_, kernels_);
      case Variant::tasks: return cholesky::factor_tasks(team_, *matrix_, kernels_, tasks, use);
      default: return cholesky::factor_inserted(team_, *matrix_, kernels_, tasks, use);
    }
  }
  [[nodiscard]] std::string describe_minor(std::int64_t order) const override {
    return fmt::format(
        "the matrix is not positive definite: its leading minor of order {} is not positive{}",
        order, options_.locations.empty() ? "" : "; a larger --nugget makes it so");
  }

  [[nodiscard]] Residual residual() const override {
    Residual found = cholesky::residual(team_, *matrix_, *input_->source, {});
    found.method = "||A - L L^T|| / (n ||A|| eps), " + found.method;
    return found;
  }
  [[nodiscard]] Figures use_result() const override {
    if (input_->sites.empty()) return {};
    const cholesky::Kriging found =
        krige(team_, *matrix_, options_.model, input_->sites, input_->split);
    Figures figures{{"log_likelihood", found.log_likelihood}, {"mean", found.mean}};
    if (found.held_out == 0) return figures;
    figures.insert(figures.end(), {{"held_out", static_cast<double>(found.held_out)},
                                   {"rmse", found.rmse},
                                   {"rmse_mean", found.rmse_mean},
                                   {"coverage", found.coverage}});
    return figures;
  }

 private:
  const std::unique_ptr<Input> input_;
  const cholesky::Kernels kernels_;
  const std::unique_ptr<TiledMatrix> matrix_;
};

}  // namespace

std::unique_ptr<Algorithm> make_cholesky(const Team& team, const Options& options) {
  return std::make_unique<Cholesky>(team, options, make_input(team, options));
}

void print_count(const Options& options) {
  constexpr std::int64_t tiles_max = 4096;  // counted within seconds
  const int tile = options.tile_of(options.n);
  const std::int64_t tiles = options.n / tile;
  if (tiles == 0 || tiles > tiles_max) {
    throw InputError(fmt::format("--count-only: {} rows make {} whole tiles of {} a side; 1 to {} "
                                 "can be counted", options.n, tiles, tile, tiles_max));
  }
  const Grid grid = options.grid.empty() ? nearly_square(options.ranks)
                                         : parse_grid(options.grid, options.ranks);
  const cholesky::TaskCount count = cholesky::count_tasks({tiles * tile, tile, grid});
  fmt::print("tiles {0} x {0} of {1}: floor({2} / {1}) a side, whole tiles only\n", tiles, tile,
             options.n);
  fmt::print("ranks {} in a grid of {} x {}\n", options.ranks, grid.rows, grid.columns);
  fmt::print("potrf {}\ntrsm {}\nsyrk {}\ngemm {}\nsend {}\nreceive {}\n", count.potrf, count.trsm,
             count.syrk, count.gemm, count.send, count.receive);
  fmt::print("computation {}\ncommunication {}\n", count.computation(), count.communication());
}

}  // namespace tiled
