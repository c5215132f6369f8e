// SPDX-License-Identifier: BSD-3-Clause
#include "solve.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

namespace minife {

using sparse::Box;
using sparse::Brick;
using sparse::Field;
using sparse::Sum;

namespace {

// The algorithm: adds steps to the runner.
class Iteration {
 public:
  Iteration(const Brick& brick, const System& system, sparse::Runner& runner, MPI_Comm communicator,
            int planned)
      : brick_(brick), system_(system), runner_(runner), grid_(brick, communicator), x_(brick),
        r_(brick), p_(brick), ap_(brick), planned_(planned),
        first_(blocks(), communicator, [this](double sum) { squares_ = sum; }),
        alpha_sum_(blocks(), communicator, [this](double sum) { set_alpha(sum); }),
        beta_sum_(blocks(), communicator, [this](double sum) { set_beta(sum); }) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    reports_ = rank == 0;
    r_.values = system.load;  // x = 0
  }

  void add_first() {
    runner_.loop({.name = "begin", .brick = brick_, .calls = {0, 0, 1}, .reads = {&r_},
                  .parts = &first_},
                 [this](std::size_t block, const Box& box) {
                   first_.parts[block] = sparse::dot(brick_, box, r_.values, r_.values);
                 });
    runner_.sum(first_);
    add_turn(first_);  // p = r
  }

  void add() {
    runner_.exchange(grid_, p_);
    runner_.loop({.name = "multiply", .brick = brick_, .calls = {1, 0, 1}, .reads_around = {&p_},
                  .writes = {&ap_}, .parts = &alpha_sum_, .urgency = 0},
                 [this](std::size_t block, const Box& box) {
                   sparse::multiply(brick_, box, system_.rows[block], p_.values, ap_.values);
                   alpha_sum_.parts[block] = sparse::dot(brick_, box, ap_.values, p_.values);
                 });
    runner_.sum(alpha_sum_);
    runner_.loop({.name = "reduce", .brick = brick_, .calls = {0, 1, 1}, .reads = {&ap_},
                  .writes = {&r_}, .parts = &beta_sum_, .after = &alpha_sum_},
                 [this](std::size_t block, const Box& box) {
                   sparse::add(brick_, box, r_.values, -alpha_, ap_.values, r_.values);
                   beta_sum_.parts[block] = sparse::dot(brick_, box, r_.values, r_.values);
                 });
    // The solution moves on while the ranks sum, since no task waits for it.
    runner_.loop({.name = "advance", .brick = brick_, .calls = {0, 1, 0}, .reads = {&p_},
                  .writes = {&x_}, .after = &alpha_sum_, .urgency = 0},
                 [this](std::size_t, const Box& box) {
                   sparse::add(brick_, box, x_.values, alpha_, p_.values, x_.values);
                 });
    runner_.sum(beta_sum_);
    add_turn(beta_sum_);
  }

  [[nodiscard]] int iterations() const { return iterations_; }
  [[nodiscard]] double residual() const { return std::sqrt(squares_); }
  void take(Vectors& vectors) {
    vectors.x.swap(x_.values);
    vectors.r.swap(r_.values);
  }

 private:
  // The loops that follow on this sum begin behind it, since it reads p.
  void add_turn(const Sum& after) {
    runner_.loop({.name = "turn", .brick = brick_, .calls = {0, 1, 0}, .reads = {&r_},
                  .writes = {&p_}, .after = &after},
                 [this](std::size_t, const Box& box) {
                   sparse::add(brick_, box, r_.values, beta_, p_.values, p_.values);
                 });
  }

  [[nodiscard]] std::size_t blocks() const { return brick_.blocks().size(); }

  void set_alpha(double product) {
    const bool over = std::sqrt(squares_) <= std::numeric_limits<double>::epsilon();
    alpha_ = over || product == 0 ? 0 : squares_ / product;
    if (!over) ++iterations_;
  }
  void set_beta(double squares) {
    beta_ = squares_ == 0 ? 0 : squares / squares_;
    squares_ = squares;
    ++done_;
    report();
  }

  // In a long run, the first rank prints a line every few seconds.
  void report() {
    constexpr std::chrono::seconds pause(10);
    const auto now = std::chrono::steady_clock::now();
    if (!reports_ || now - reported_ < pause) return;
    reported_ = now;
    fmt::print(stderr, "iteration {} of {}, residual {:.1e}\n", done_, planned_, residual());
  }

  const Brick& brick_;
  const System& system_;
  sparse::Runner& runner_;
  sparse::Grid grid_;
  Field x_, r_, p_, ap_;  // solution, residual, direction, and A p
  bool reports_ = false;
  const int planned_;  // iterations,
  int done_ = 0;       // and those that are carried out
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
  Sum first_, alpha_sum_, beta_sum_;  // one sum is in flight at a time
  double alpha_ = 0;
  double beta_ = 0;
  double squares_ = 0;  // of r
  int iterations_ = 0;
};

}  // namespace

Outcome solve(const Equations& equations, const MPI_Comm communicator, const Variant variant,
              const int iterations, Vectors& vectors) {
  const std::unique_ptr<sparse::Runner> runner =
      make_runner(variant, equations.brick, equations.times);
  Iteration iteration(equations.brick, equations.system, *runner, communicator, iterations);
  Outcome outcome = runner->measure(communicator, [&] {
    runner->run([&] {
      iteration.add_first();
      for (int i = 0; i < iterations; ++i) iteration.add();
    });
  });
  outcome.iterations = iteration.iterations();
  outcome.residual = iteration.residual();
  iteration.take(vectors);
  return outcome;
}

tiled::KernelTimes measure_kernels(const int points, const std::int64_t of) {
  const Problem problem{{points - 1, points - 1, points - 1}};
  const Brick brick(nodes_of(problem, {1, 1, 1}, 1), 0);
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
