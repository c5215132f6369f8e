// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients without preconditioner, as steps for a runner. Knows no MPI and no runtime.
// Also for `imbrex simulate`.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "../sparse/steps.hpp"
#include "assemble.hpp"

namespace minife {

using sparse::Box;
using sparse::Brick;

struct Vectors {
  std::vector<double> x, r;  // solution and residual
};

class Algorithm {
 public:
  static constexpr std::size_t sum_count = 3;  // the only grid has number 0

  // `report` gets the residual after each iteration. The references outlive the run.
  Algorithm(const Brick& brick, const System& system, sparse::Runner& runner,
            std::function<void(double residual)> report)
      : brick_(brick), system_(system), runner_(runner), report_(std::move(report)) {
    r_.values = system.load;  // x = 0
  }
  Algorithm(const Algorithm&) = delete;
  Algorithm& operator=(const Algorithm&) = delete;

  // The steps before the first iteration.
  void add_first() {
    runner_.loop({.name = "begin", .brick = brick_, .calls = {0, 0, 1}, .reads = {&r_},
                  .parts = &first_},
                 [this](std::size_t block, const Box& box) {
                   first_.parts[block] = sparse::dot(brick_, box, r_.values, r_.values);
                 });
    runner_.sum(first_);
    add_turn(first_);  // p = r
  }

  // The steps of an iteration.
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
  void add_turn(const sparse::Sum& after) {
    runner_.loop({.name = "turn", .brick = brick_, .calls = {0, 1, 0}, .reads = {&r_},
                  .writes = {&p_}, .after = &after},
                 [this](std::size_t, const Box& box) {
                   sparse::add(brick_, box, r_.values, beta_, p_.values, p_.values);
                 });
  }

  void set_alpha(double product) {
    const bool over = std::sqrt(squares_) <= std::numeric_limits<double>::epsilon();
    alpha_ = over || product == 0 ? 0 : squares_ / product;
    if (!over) ++iterations_;
  }
  void set_beta(double squares) {
    beta_ = squares_ == 0 ? 0 : squares / squares_;
    squares_ = squares;
    report_(residual());
  }

  const Brick& brick_;
  const System& system_;
  sparse::Runner& runner_;
  const std::function<void(double residual)> report_;
  sparse::Grid grid_{brick_, 0};
  // Solution, residual, direction, and A p.
  sparse::Field x_{runner_, brick_}, r_{runner_, brick_}, p_{runner_, brick_}, ap_{runner_, brick_};
  // One sum is in flight at a time.
  sparse::Sum first_{brick_, 0, [this](double sum) { squares_ = sum; }};
  sparse::Sum alpha_sum_{brick_, 1, [this](double sum) { set_alpha(sum); }};
  sparse::Sum beta_sum_{brick_, 2, [this](double sum) { set_beta(sum); }};
  double alpha_ = 0;
  double beta_ = 0;
  double squares_ = 0;  // of r
  int iterations_ = 0;
};

}  // namespace minife
