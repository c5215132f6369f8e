// SPDX-License-Identifier: BSD-3-Clause
#include "solve.hpp"

#include <cmath>
#include <utility>

namespace hpcg {

Problem::Problem(const sparse::BrickShape& shape, const MPI_Comm communicator,
                 tiled::KernelTimes times)
    : times_(std::move(times)), levels_([&] {
        int rank = 0;
        MPI_Comm_rank(communicator, &rank);
        return make_levels(shape, rank, times_.empty());
      }()),
      communicators_(level_count + Algorithm::sum_count) {
  for (MPI_Comm& duplicate : communicators_) MPI_Comm_dup(communicator, &duplicate);
}

Problem::~Problem() {
  for (MPI_Comm& duplicate : communicators_) MPI_Comm_free(&duplicate);
}

sparse::Network Problem::network() const {
  sparse::Network network;
  for (std::size_t l = 0; l < level_count; ++l) {
    network.halos.emplace_back(levels_[l]->brick, communicators_[l]);
  }
  network.sums.assign(communicators_.begin() + level_count, communicators_.end());
  return network;
}

Solver::Solver(const Problem& problem, const Variant variant)
    : communicator_(problem.of_level(0)), network_(problem.network()),
      runner_(make_runner(variant, problem.finest().brick, problem.times(), network_)),
      algorithm_(problem.levels(), *runner_) {}

Outcome Solver::solve(const std::vector<double>& right_side, const Limits& limits,
                      std::vector<double>& solution) {
  algorithm_.begin(right_side);
  int iterations = limits.iterations;
  double first = 0;
  const auto residual = [&] { return quotient(std::sqrt(algorithm_.squares()), first); };
  Outcome outcome = runner_->measure(communicator_, [&] {
    runner_->run([this] { algorithm_.add_first(); });
    first = std::sqrt(algorithm_.squares());
    const auto add = [&] { algorithm_.add(limits.preconditioned); };
    if (limits.tolerance > 0) {
      const sparse::Test test{algorithm_.squares_sum(),
                              [&] { return residual() <= limits.tolerance; }};
      iterations = runner_->repeat_until(test, limits.iterations, add);
    } else {
      runner_->run([&] { runner_->repeat(limits.iterations, add); });
    }
  });
  outcome.iterations = iterations;
  outcome.residual = residual();
  solution = algorithm_.x().values;
  return outcome;
}

void Solver::multiply(const std::vector<double>& x, std::vector<double>& y) {
  algorithm_.p().values = x;
  runner_->run([this] { algorithm_.add_multiply(); });
  y = algorithm_.ap().values;
}

void Solver::precondition(const std::vector<double>& r, std::vector<double>& z) {
  algorithm_.r().values = r;
  runner_->run([this] { algorithm_.add_cycle(); });
  z = algorithm_.z().values;
}

double Solver::dot(const std::vector<double>& a, const std::vector<double>& b) {
  runner_->run([&, this] { algorithm_.add_dot(a, b); });
  return algorithm_.squares();
}

std::int64_t bytes_sent(const Problem& problem) {
  std::int64_t bytes = 0;
  for (std::size_t l = 0; l < level_count; ++l) {
    const Brick& brick = problem.levels()[l]->brick;
    const int exchanges = l == 0 ? 4 : l + 1 < level_count ? 3 : 1;
    bytes += exchanges * sparse::Halo(brick, problem.of_level(l)).bytes_sent();
  }
  return bytes;
}

double operations_of(const sparse::Point& points, const int iterations) noexcept {
  double rows = 1;
  for (const int count : points) rows *= count;
  const double vectors = (3.0 * iterations + 1) * 2 * rows;  // sums; as many for additions
  double entries = (iterations + 1.0) * 2 * entries_of(points);
  sparse::Point here = points;
  for (int level = 0; level < level_count; ++level) {
    // A smoothing goes through the entries twice; the coarsest level has one, and no residual.
    const double passes = level + 1 < level_count ? 5 : 2;
    entries += iterations * passes * 2 * entries_of(here);
    for (int& count : here) count /= 2;
  }
  return 2 * vectors + entries;
}

tiled::KernelTimes measure_kernels(const int points, const std::int64_t of) {
  const std::vector<std::unique_ptr<Level>> levels =
      make_levels({{points, points, points}, {1, 1, 1}, 1}, 0, true);
  const Level& level = *levels[0];
  const Brick& brick = level.brick;
  const Box& all = brick.blocks()[0];
  const std::vector<double> a(brick.size(), 1.0);
  std::vector<double> b(brick.size(), 1.0);
  volatile double keep = 0;
  const auto nothing = [] {};
  tiled::KernelTimes times{
      tiled::least_time(nothing, [&] { smooth(level, 0, a, a, b); }),
      tiled::least_time(nothing,
                        [&] { sparse::multiply(brick, all, level.operators[0].rows, a, b); }),
      tiled::least_time(nothing, [&] { sparse::add(brick, all, a, 0.5, b, b); }),
      tiled::least_time(nothing, [&] { keep = sparse::dot(brick, all, a, b); }),
      tiled::least_time(nothing, [&] { fill(level, 0, 0, b); })};
  for (double& time : times) {
    time *= static_cast<double>(of) / static_cast<double>(all.count());
  }
  return times;
}

}  // namespace hpcg
