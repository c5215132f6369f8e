// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients, preconditioned by a V-cycle of multigrid, as steps for a runner. Knows no
// MPI and no runtime. Also for `imbrex simulate`.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "../sparse/steps.hpp"
#include "level.hpp"

namespace hpcg {

using sparse::Box;
using sparse::Brick;
using sparse::Field;

[[nodiscard]] inline double quotient(double a, double b) noexcept {
  return b == 0 ? 0 : a / b;  // kernels that sleep give 0
}

// Each add function hands steps to the runner; their results are there when the runner has run
// them. The grid of a level has the number of the level.
class Algorithm {
 public:
  static constexpr std::size_t sum_count = 3;

  // The references outlive the run. REQUIRES: `levels` are those of make_levels().
  Algorithm(const std::vector<std::unique_ptr<Level>>& levels, sparse::Runner& runner)
      : finest_(*levels.front()), runner_(runner) {
    for (std::size_t l = 0; l < levels.size(); ++l) {
      stages_.push_back(std::make_unique<Stage>(runner, *levels[l], l));
    }
  }
  Algorithm(const Algorithm&) = delete;
  Algorithm& operator=(const Algorithm&) = delete;

  // Begins anew. REQUIRES: no step is under way.
  void begin(const std::vector<double>& right_side) {
    for (Field* const field : {&x_, &p_, &ap_}) field->values.assign(field->values.size(), 0);
    r().values = right_side;  // the first guess is 0
    rz_last_ = alpha_ = beta_ = squares_ = 0;
  }

  // The steps before the first iteration: r r.
  void add_first() {
    runner_.loop({.name = "r r", .brick = brick_, .calls = dot_once, .reads = {&r()}, .parts = &rr_,
                  .urgency = 0},
                 [this](std::size_t block, const Box& box) {
                   rr_.parts[block] = sparse::dot(brick_, box, r().values, r().values);
                 });
    runner_.sum(rr_);
  }

  // The steps of an iteration.
  void add(bool preconditioned) {
    if (preconditioned) {
      add_cycle();
    } else {
      runner_.loop({.name = "copy", .brick = brick_, .calls = add_once, .reads = {&r()},
                    .writes = {&z()}},
                   [this](std::size_t, const Box& box) {
                     sparse::add(brick_, box, r().values, 0, r().values, z().values);
                   });
    }
    runner_.loop({.name = "r z", .brick = brick_, .calls = dot_once, .reads = {&r(), &z()},
                  .parts = &rz_},
                 [this](std::size_t block, const Box& box) {
                   rz_.parts[block] = sparse::dot(brick_, box, r().values, z().values);
                 });
    runner_.sum(rz_);
    runner_.loop({.name = "turn", .brick = brick_, .calls = add_once, .reads = {&z()},
                  .writes = {&p_}, .after = &rz_},
                 [this](std::size_t, const Box& box) {
                   sparse::add(brick_, box, z().values, beta_, p_.values, p_.values);
                 });
    add_multiply();
    runner_.sum(pap_);
    runner_.loop({.name = "advance", .brick = brick_, .calls = add_once, .reads = {&p_},
                  // no task waits for the solution
                  .writes = {&x_}, .after = &pap_, .urgency = 0},
                 [this](std::size_t, const Box& box) {
                   sparse::add(brick_, box, x_.values, alpha_, p_.values, x_.values);
                 });
    runner_.loop({.name = "reduce", .brick = brick_, .calls = add_once, .reads = {&ap_},
                  .writes = {&r()}, .after = &pap_},
                 [this](std::size_t, const Box& box) {
                   sparse::add(brick_, box, r().values, -alpha_, ap_.values, r().values);
                 });
    add_first();
  }

  // A p, and p A p.
  void add_multiply() {
    runner_.exchange(stages_[0]->grid, p_);
    runner_.loop({.name = "multiply", .brick = brick_, .calls = {0, 1, 0, 1, 0},
                  .reads_around = {&p_}, .writes = {&ap_}, .parts = &pap_},
                 [this](std::size_t block, const Box& box) {
                   sparse::multiply(brick_, box, finest_.operators[block].rows, p_.values,
                                    ap_.values);
                   pap_.parts[block] = sparse::dot(brick_, box, p_.values, ap_.values);
                 });
  }

  // z = M r.
  void add_cycle() { add_cycle(0); }

  // The dot product of any two vectors becomes squares().
  void add_dot(const std::vector<double>& a, const std::vector<double>& b) {
    runner_.loop({.name = "dot", .brick = brick_, .calls = dot_once, .parts = &rr_},
                 [this, &a, &b](std::size_t block, const Box& box) {
                   rr_.parts[block] = sparse::dot(brick_, box, a, b);
                 });
    runner_.sum(rr_);
  }

  Field& x() { return x_; }
  Field& p() { return p_; }
  Field& ap() { return ap_; }
  Field& r() { return stages_[0]->side; }
  Field& z() { return stages_[0]->even; }  // what the cycle ends with
  [[nodiscard]] double squares() const noexcept { return squares_; }
  [[nodiscard]] const sparse::Sum& squares_sum() const noexcept { return rr_; }  // that sets them

 private:
  // The data of the cycle on one level.
  struct Stage {
    Stage(const sparse::Runner& runner, const Level& of, std::size_t number)
        : level(of), grid(of.brick, number), side(runner, of.brick), even(runner, of.brick),
          odd(runner, of.brick), product(runner, of.brick) {}
    const Level& level;
    sparse::Grid grid;
    Field side;       // the right side: on the finest level r, on others the residual above
    Field even, odd;  // the result, after so many sweeps
    Field product;    // A times the result
  };

  static constexpr int coarse_urgency = 2;  // what all else waits for
  // The number of times that a body calls each kernel of kernel_names.
  inline static const std::vector<int> add_once{0, 0, 1, 0, 0};
  inline static const std::vector<int> dot_once{0, 0, 0, 1, 0};

  void add_cycle(std::size_t number) {
    Stage& stage = *stages_[number];
    const int urgency = number == 0 ? 1 : coarse_urgency;
    runner_.loop({.name = "clear", .brick = stage.level.brick, .calls = {0, 0, 0, 0, 1},
                  .writes = {&stage.even}, .urgency = urgency},
                 [&stage](std::size_t block, const Box&) {
                   fill(stage.level, block, 0, stage.even.values);
                 });
    add_smooth(stage, stage.even, stage.odd, urgency);
    if (number + 1 == stages_.size()) return;
    Stage& coarse = *stages_[number + 1];
    add_residual(stage, coarse);
    add_cycle(number + 1);
    add_correction(stage, coarse, number + 2 == stages_.size() ? coarse.odd : coarse.even);
    add_smooth(stage, stage.odd, stage.even, urgency);
  }

  void add_smooth(Stage& stage, Field& from, Field& to, int urgency) {
    runner_.exchange(stage.grid, from);
    runner_.loop({.name = "smooth", .brick = stage.level.brick, .calls = {1, 0, 0, 0, 0},
                  .reads = {&stage.side}, .reads_around = {&from}, .writes = {&to},
                  .urgency = urgency},
                 [&stage, &from, &to](std::size_t block, const Box&) {
                   smooth(stage.level, block, stage.side.values, from.values, to.values);
                 });
  }

  void add_residual(Stage& fine, Stage& coarse) {
    runner_.exchange(fine.grid, fine.odd);
    runner_.loop({.name = "residual", .brick = fine.level.brick, .calls = {0, 1, 0, 0, 0},
                  .reads_around = {&fine.odd}, .writes = {&fine.product},
                  .urgency = coarse_urgency},
                 [&fine](std::size_t block, const Box& box) {
                   const Level& level = fine.level;
                   sparse::multiply(level.brick, box, level.operators[block].rows,
                                    fine.odd.values, fine.product.values);
                 });
    const sparse::Loop::Near& near = coarse.level.finer;
    runner_.loop({.name = "restrict", .brick = coarse.level.brick, .calls = {0, 0, 0, 0, 1},
                  .reads_near = {{&fine.side, &near}, {&fine.product, &near}},
                  .writes = {&coarse.side}, .urgency = coarse_urgency},
                 [&fine, &coarse](std::size_t block, const Box&) {
                   restrict_residual(fine.level, coarse.level, block, fine.side.values,
                                     fine.product.values, coarse.side.values);
                 });
  }

  void add_correction(Stage& fine, Stage& coarse, Field& correction) {
    runner_.loop({.name = "prolong", .brick = fine.level.brick, .calls = {0, 0, 0, 0, 1},
                  .reads_near = {{&correction, &fine.level.coarser}}, .writes = {&fine.odd},
                  .urgency = coarse_urgency},
                 [&fine, &coarse, &correction](std::size_t block, const Box&) {
                   prolong(fine.level, coarse.level, block, correction.values, fine.odd.values);
                 });
  }

  void set_beta(double rz) {
    beta_ = quotient(rz, rz_last_);
    rz_last_ = rz;
  }
  // Runs between a set_beta() and the next: p, and so this sum, waits for the first, and r, which
  // the next sums, for this.
  void set_alpha(double pap) { alpha_ = quotient(rz_last_, pap); }

  const Level& finest_;
  const Brick& brick_ = finest_.brick;
  sparse::Runner& runner_;
  std::vector<std::unique_ptr<Stage>> stages_;  // by level
  Field x_{runner_, brick_}, p_{runner_, brick_}, ap_{runner_, brick_};
  sparse::Sum rz_{brick_, 0, [this](double sum) { set_beta(sum); }};
  sparse::Sum pap_{brick_, 1, [this](double sum) { set_alpha(sum); }};
  sparse::Sum rr_{brick_, 2, [this](double sum) { squares_ = sum; }};
  double rz_last_ = 0;
  double alpha_ = 0;
  double beta_ = 0;
  double squares_ = 0;  // of r
};

}  // namespace hpcg
