// SPDX-License-Identifier: BSD-3-Clause
#include "solve.hpp"

#include <cmath>
#include <utility>

namespace hpcg {

using sparse::Box;
using sparse::Brick;
using sparse::Field;
using sparse::Grid;
using sparse::Loop;
using sparse::Runner;
using sparse::Sum;

namespace {

enum SumNumber : std::size_t { rz_sum, pap_sum, rr_sum, sum_count };

constexpr int coarse_urgency = 2;  // what all else waits for

// The number of times that a body calls each kernel of kernel_names.
const std::vector<int> add_once{0, 0, 1, 0, 0};
const std::vector<int> dot_once{0, 0, 0, 1, 0};

double quotient(double a, double b) { return b == 0 ? 0 : a / b; }  // kernels that sleep give 0

}  // namespace

Problem::Problem(const sparse::BrickShape& shape, const MPI_Comm communicator,
                 tiled::KernelTimes times)
    : times_(std::move(times)), levels_([&] {
        int rank = 0;
        MPI_Comm_rank(communicator, &rank);
        return make_levels(shape, rank, times_.empty());
      }()),
      communicators_(level_count + sum_count) {
  for (MPI_Comm& duplicate : communicators_) MPI_Comm_dup(communicator, &duplicate);
}

Problem::~Problem() {
  for (MPI_Comm& duplicate : communicators_) MPI_Comm_free(&duplicate);
}

// The algorithm. Each function adds steps to the runner; what they compute is there when run()
// has returned.
class Solver::Steps {
 public:
  Steps(const Problem& problem, Variant variant)
      : problem_(problem), finest_(problem.finest()),
        runner_(make_runner(variant, finest_.brick, problem.times())),
        x_(finest_.brick), p_(finest_.brick), ap_(finest_.brick),
        rz_(x_.blocks.size(), problem.of_sum(rz_sum), [this](double sum) { set_beta(sum); }),
        pap_(x_.blocks.size(), problem.of_sum(pap_sum), [this](double sum) { set_alpha(sum); }),
        rr_(x_.blocks.size(), problem.of_sum(rr_sum), [this](double sum) { squares_ = sum; }) {
    for (std::size_t l = 0; l < level_count; ++l) {
      const Level& level = *problem.levels()[l];
      stages_.push_back(std::make_unique<Stage>(level, problem.of_level(l)));
    }
  }

  Outcome solve(const std::vector<double>& right_side, const Limits& limits) {
    for (Field* const field : {&x_, &p_, &ap_}) field->values.assign(field->values.size(), 0);
    r().values = right_side;  // the first guess is 0
    rz_last_ = alpha_ = beta_ = squares_ = 0;
    int iterations = 0;
    double residual = 0;
    Outcome outcome = runner_->measure(problem_.of_sum(rr_sum), [&] {
      run([this] { add_squares(); });
      const double first = std::sqrt(squares_);
      const bool bounded = limits.tolerance > 0;
      const int at_once = bounded ? 1 : limits.iterations;
      const auto over = [&] {
        residual = quotient(std::sqrt(squares_), first);
        return iterations >= limits.iterations || (bounded && residual <= limits.tolerance);
      };
      while (!over()) {
        run([&] {
          for (int i = 0; i < at_once; ++i) add_iteration(limits.preconditioned);
        });
        iterations += at_once;
      }
    });
    outcome.iterations = iterations;
    outcome.residual = residual;
    return outcome;
  }

  void run(const std::function<void()>& steps) { runner_->run(steps); }

  // A p, and p A p.
  void add_multiply() {
    runner_->exchange(stages_[0]->grid, p_);
    runner_->loop({.name = "multiply", .brick = finest_.brick, .calls = {0, 1, 0, 1, 0},
                   .reads_around = {&p_}, .writes = {&ap_}, .parts = &pap_},
                  [this](std::size_t block, const Box& box) {
                    sparse::multiply(finest_.brick, box, finest_.operators[block].rows, p_.values,
                                     ap_.values);
                    pap_.parts[block] = sparse::dot(finest_.brick, box, p_.values, ap_.values);
                  });
  }

  // z = M r.
  void add_cycle(std::size_t number) {
    Stage& stage = *stages_[number];
    const int urgency = number == 0 ? 1 : coarse_urgency;
    runner_->loop({.name = "clear", .brick = stage.level.brick, .calls = {0, 0, 0, 0, 1},
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

  Field& x() { return x_; }
  Field& p() { return p_; }
  Field& ap() { return ap_; }
  Field& r() { return stages_[0]->side; }
  Field& z() { return stages_[0]->even; }  // what the cycle ends with
  Sum& rz() { return rz_; }
  Sum& rr() { return rr_; }

  // The dot product of any two vectors.
  double dot(const std::vector<double>& a, const std::vector<double>& b) {
    run([&] {
      runner_->loop({.name = "dot", .brick = finest_.brick, .calls = dot_once, .parts = &rr_},
                    [&, this](std::size_t block, const Box& box) {
                      rr_.parts[block] = sparse::dot(finest_.brick, box, a, b);
                    });
      runner_->sum(rr_);
    });
    return squares_;
  }

 private:
  // The data of the cycle on one level.
  struct Stage {
    Stage(const Level& of, MPI_Comm communicator)
        : level(of), grid(of.brick, communicator), side(of.brick), even(of.brick), odd(of.brick),
          product(of.brick) {}
    const Level& level;
    Grid grid;
    Field side;       // the right side: on the finest level r, on others the residual above
    Field even, odd;  // the result, after so many sweeps
    Field product;    // A times the result
  };

  void add_smooth(Stage& stage, Field& from, Field& to, int urgency) {
    runner_->exchange(stage.grid, from);
    runner_->loop({.name = "smooth", .brick = stage.level.brick, .calls = {1, 0, 0, 0, 0},
                   .reads = {&stage.side}, .reads_around = {&from}, .writes = {&to},
                   .urgency = urgency},
                  [&stage, &from, &to](std::size_t block, const Box&) {
                    smooth(stage.level, block, stage.side.values, from.values, to.values);
                  });
  }

  void add_residual(Stage& fine, Stage& coarse) {
    runner_->exchange(fine.grid, fine.odd);
    runner_->loop({.name = "residual", .brick = fine.level.brick, .calls = {0, 1, 0, 0, 0},
                   .reads_around = {&fine.odd}, .writes = {&fine.product},
                   .urgency = coarse_urgency},
                  [&fine](std::size_t block, const Box& box) {
                    const Level& level = fine.level;
                    sparse::multiply(level.brick, box, level.operators[block].rows,
                                     fine.odd.values, fine.product.values);
                  });
    const Loop::Near& near = coarse.level.finer;
    runner_->loop({.name = "restrict", .brick = coarse.level.brick, .calls = {0, 0, 0, 0, 1},
                   .reads_near = {{&fine.side, &near}, {&fine.product, &near}},
                   .writes = {&coarse.side}, .urgency = coarse_urgency},
                  [&fine, &coarse](std::size_t block, const Box&) {
                    restrict_residual(fine.level, coarse.level, block, fine.side.values,
                                      fine.product.values, coarse.side.values);
                  });
  }

  void add_correction(Stage& fine, Stage& coarse, Field& correction) {
    runner_->loop({.name = "prolong", .brick = fine.level.brick, .calls = {0, 0, 0, 0, 1},
                   .reads_near = {{&correction, &fine.level.coarser}}, .writes = {&fine.odd},
                   .urgency = coarse_urgency},
                  [&fine, &coarse, &correction](std::size_t block, const Box&) {
                    prolong(fine.level, coarse.level, block, correction.values, fine.odd.values);
                  });
  }

  void add_iteration(bool preconditioned) {
    const Brick& brick = finest_.brick;
    if (preconditioned) {
      add_cycle(0);
    } else {
      runner_->loop({.name = "copy", .brick = brick, .calls = add_once, .reads = {&r()},
                     .writes = {&z()}},
                    [this, &brick](std::size_t, const Box& box) {
                      sparse::add(brick, box, r().values, 0, r().values, z().values);
                    });
    }
    runner_->loop({.name = "r z", .brick = brick, .calls = dot_once, .reads = {&r(), &z()},
                   .parts = &rz_},
                  [this, &brick](std::size_t block, const Box& box) {
                    rz_.parts[block] = sparse::dot(brick, box, r().values, z().values);
                  });
    runner_->sum(rz_);
    runner_->loop({.name = "turn", .brick = brick, .calls = add_once, .reads = {&z()},
                   .writes = {&p_}, .after = &rz_},
                  [this, &brick](std::size_t, const Box& box) {
                    sparse::add(brick, box, z().values, beta_, p_.values, p_.values);
                  });
    add_multiply();
    runner_->sum(pap_);
    runner_->loop({.name = "advance", .brick = brick, .calls = add_once, .reads = {&p_},
                   // no task waits for the solution
                   .writes = {&x_}, .after = &pap_, .urgency = 0},
                  [this, &brick](std::size_t, const Box& box) {
                    sparse::add(brick, box, x_.values, alpha_, p_.values, x_.values);
                  });
    runner_->loop({.name = "reduce", .brick = brick, .calls = add_once, .reads = {&ap_},
                   .writes = {&r()}, .after = &pap_},
                  [this, &brick](std::size_t, const Box& box) {
                    sparse::add(brick, box, r().values, -alpha_, ap_.values, r().values);
                  });
    add_squares();
  }

  void add_squares() {
    runner_->loop({.name = "r r", .brick = finest_.brick, .calls = dot_once, .reads = {&r()},
                   .parts = &rr_, .urgency = 0},
                  [this](std::size_t block, const Box& box) {
                    rr_.parts[block] = sparse::dot(finest_.brick, box, r().values, r().values);
                  });
    runner_->sum(rr_);
  }

  void set_beta(double rz) {
    beta_ = quotient(rz, rz_last_);
    rz_last_ = rz;
  }
  // Runs between a set_beta() and the next: p, and so this sum, waits for the first, and r, which
  // the next sums, for this.
  void set_alpha(double pap) { alpha_ = quotient(rz_last_, pap); }

  const Problem& problem_;
  const Level& finest_;
  const std::unique_ptr<Runner> runner_;
  std::vector<std::unique_ptr<Stage>> stages_;  // by level
  Field x_, p_, ap_;
  Sum rz_, pap_, rr_;
  double rz_last_ = 0;
  double alpha_ = 0;
  double beta_ = 0;
  double squares_ = 0;  // of r
};

Solver::Solver(const Problem& problem, const Variant variant)
    : steps_(std::make_unique<Steps>(problem, variant)) {}

Solver::~Solver() = default;

Outcome Solver::solve(const std::vector<double>& right_side, const Limits& limits,
                      std::vector<double>& solution) {
  const Outcome outcome = steps_->solve(right_side, limits);
  solution = steps_->x().values;
  return outcome;
}

void Solver::multiply(const std::vector<double>& x, std::vector<double>& y) {
  steps_->p().values = x;
  steps_->run([this] { steps_->add_multiply(); });
  y = steps_->ap().values;
}

void Solver::precondition(const std::vector<double>& r, std::vector<double>& z) {
  steps_->r().values = r;
  steps_->run([this] { steps_->add_cycle(0); });
  z = steps_->z().values;
}

double Solver::dot(const std::vector<double>& a, const std::vector<double>& b) {
  return steps_->dot(a, b);
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
