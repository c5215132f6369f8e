// SPDX-License-Identifier: BSD-3-Clause
#include "solve.hpp"

#include <fmt/format.h>

#include <chrono>

namespace minife {

namespace {

// In a long run, the first rank prints a line every few seconds.
class Report {
 public:
  Report(const MPI_Comm communicator, const int planned) : planned_(planned) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    is_first_rank_ = rank == 0;
  }
  // After each iteration.
  void add(const double residual) {
    constexpr std::chrono::seconds pause(10);
    const auto now = std::chrono::steady_clock::now();
    ++done_;
    if (!is_first_rank_ || now - reported_ < pause) return;
    reported_ = now;
    fmt::print(stderr, "iteration {} of {}, residual {:.1e}\n", done_, planned_, residual);
  }

 private:
  bool is_first_rank_ = false;
  const int planned_;  // iterations,
  int done_ = 0;       // and those that are carried out
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
};

}  // namespace

Outcome solve(const Equations& equations, const MPI_Comm communicator, const Variant variant,
              const int iterations, Vectors& vectors) {
  sparse::Network network;
  network.halos.emplace_back(equations.brick, communicator);
  network.sums.assign(Algorithm::sum_count, communicator);
  const auto runner = make_runner(variant, equations.brick, equations.times, network);
  Report report(communicator, iterations);
  Algorithm algorithm(equations.brick, equations.system, *runner,
                      [&report](const double residual) { report.add(residual); });
  Outcome outcome = runner->measure(communicator, [&] {
    runner->run([&] {
      algorithm.add_first();
      runner->repeat(iterations, [&] { algorithm.add(); });
    });
  });
  outcome.iterations = algorithm.iterations();
  outcome.residual = algorithm.residual();
  algorithm.take(vectors);
  return outcome;
}

tiled::KernelTimes measure_kernels(const int points, const std::int64_t of) {
  const Problem problem{{points - 1, points - 1, points - 1}};
  const Brick brick(nodes_of({problem.elements, {1, 1, 1}, 1}), 0);
  const System system = assemble(problem, brick);
  const Box& all = brick.blocks()[0];
  const std::vector<double> a(brick.size(), 1.0);
  std::vector<double> b(brick.size(), 1.0);
  volatile double keep = 0;
  const auto nothing = [] {};
  tiled::KernelTimes times{
      tiled::least_time(nothing,
                        [&] { sparse::multiply(brick, all, system.rows[0], a, b); }),
      tiled::least_time(nothing, [&] { sparse::add(brick, all, a, 0.5, b, b); }),
      tiled::least_time(nothing, [&] { keep = sparse::dot(brick, all, a, b); })};
  for (double& time : times) {
    time *= static_cast<double>(of) / static_cast<double>(all.count());
  }
  return times;
}

}  // namespace minife
