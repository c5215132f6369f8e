// SPDX-License-Identifier: BSD-3-Clause
#include "validity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace hpcg {

namespace {

constexpr int iterations_max = 50;
constexpr double tolerance = 1e-12;

// Between 1 and 2 on the points of the level.
std::vector<double> random_vector(const Level& level, std::mt19937_64& numbers) {
  std::uniform_real_distribution<double> between(1, 2);
  std::vector<double> vector(level.brick.size());
  sparse::for_each_line(level.brick, level.brick.owned(), [&](int first, int count) {
    std::generate_n(vector.data() + first, count, [&] { return between(numbers); });
  });
  return vector;
}

}  // namespace

Convergence test_convergence(Problem& problem, const Variant variant) {
  std::vector<double> side = right_side(problem.finest());
  exaggerate_diagonal(problem.finest(), side);
  Convergence found;
  std::vector<double> solution;
  {
    Solver solver(problem, variant);
    for (int round = 0; round < 2; ++round) {
      const Limits plain{.iterations = iterations_max, .tolerance = tolerance,
                         .preconditioned = false};
      const Limits cycle{.iterations = iterations_max, .tolerance = tolerance};
      found.plain = std::max(found.plain, solver.solve(side, plain, solution).iterations);
      found.preconditioned =
          std::max(found.preconditioned, solver.solve(side, cycle, solution).iterations);
    }
  }
  restore_diagonal(problem.finest());
  return found;
}

Symmetry test_symmetry(const Problem& problem, const Variant variant) {
  Solver solver(problem, variant);
  int rank = 0;
  MPI_Comm_rank(problem.of_level(0), &rank);
  std::mt19937_64 numbers(static_cast<std::uint64_t>(rank) + 1);
  const std::vector<double> x = random_vector(problem.finest(), numbers);
  const std::vector<double> y = random_vector(problem.finest(), numbers);
  const double norms = std::sqrt(solver.dot(x, x)) * std::sqrt(solver.dot(y, y));
  const double scale = 2 * (2 * 26.0) * norms * std::numeric_limits<double>::epsilon();
  std::vector<double> of_x;
  std::vector<double> of_y;
  Symmetry found;
  solver.multiply(x, of_x);
  solver.multiply(y, of_y);
  found.multiply = std::abs(solver.dot(x, of_y) - solver.dot(y, of_x)) / scale;
  solver.precondition(x, of_x);
  solver.precondition(y, of_y);
  found.cycle = std::abs(solver.dot(x, of_y) - solver.dot(y, of_x)) / scale;
  return found;
}

double variance_of(const std::vector<double>& values) noexcept {
  if (values.empty()) return 0;
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / count;
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / count;
  return variance;
}

}  // namespace hpcg
