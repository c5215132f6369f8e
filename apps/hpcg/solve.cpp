// SPDX-License-Identifier: BSD-3-Clause
#include "solve.hpp"

#include <imbrex/detail/observation.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <utility>

namespace hpcg {

using sparse::Box;
using sparse::Brick;

namespace {

enum SumNumber : std::size_t { rz_sum, pap_sum, rr_sum, sum_count };

constexpr int coarse_urgency = 2;  // what all else waits for

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
      : problem_(problem), finest_(problem.finest()), runner_(make_runner(variant)),
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
    kernel_ns_ = 0;
    const double mpi_before = runner_->mpi_s();
    const std::int64_t tests_before = runner_->tests();
    MPI_Barrier(problem_.of_sum(rr_sum));
    const double start = MPI_Wtime();
    const double in_task_before = imbrex::detail::totals().in_task_s;
    Outcome outcome;
    run([this] { add_squares(); });
    const double first = std::sqrt(squares_);
    const bool bounded = limits.tolerance > 0;
    const int at_once = bounded ? 1 : limits.iterations;
    const auto over = [&] {
      outcome.residual = quotient(std::sqrt(squares_), first);
      return outcome.iterations >= limits.iterations ||
             (bounded && outcome.residual <= limits.tolerance);
    };
    while (!over()) {
      run([&] {
        for (int i = 0; i < at_once; ++i) add_iteration(limits.preconditioned);
      });
      outcome.iterations += at_once;
    }
    outcome.seconds = MPI_Wtime() - start;
    outcome.in_task_s = imbrex::detail::totals().in_task_s - in_task_before;
    outcome.kernel_s = 1e-9 * static_cast<double>(kernel_ns_.load(std::memory_order_relaxed));
    outcome.mpi_s = runner_->mpi_s() - mpi_before;
    outcome.tests = runner_->tests() - tests_before;
    return outcome;
  }

  void run(const std::function<void()>& steps) { runner_->run(steps); }

  // A p, and p A p.
  void add_multiply() {
    runner_->exchange(stages_[0]->grid, p_);
    loop({.name = "multiply", .level = finest_, .reads_around = {&p_}, .writes = {&ap_},
          .parts = &pap_},
         {0, 1, 0, 1, 0}, [this](std::size_t block, const Box& box) {
           sparse::multiply(finest_.brick, box, finest_.operators[block].rows, p_.values,
                            ap_.values);
           pap_.parts[block] = sparse::dot(finest_.brick, box, p_.values, ap_.values);
         });
  }

  // z = M r.
  void add_cycle(std::size_t number) {
    Stage& stage = *stages_[number];
    const int urgency = number == 0 ? 1 : coarse_urgency;
    loop({.name = "clear", .level = stage.grid.level, .writes = {&stage.even}, .urgency = urgency},
         {0, 0, 0, 0, 1}, [&stage](std::size_t block, const Box&) {
           fill(stage.grid.level, block, 0, stage.even.values);
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

  // Of any two vectors.
  double dot(const std::vector<double>& a, const std::vector<double>& b) {
    run([&] {
      runner_->loop({.name = "dot", .level = finest_, .parts = &rr_}, [&, this](std::size_t block) {
        rr_.parts[block] = sparse::dot(finest_.brick, finest_.brick.blocks()[block], a, b);
      });
      runner_->sum(rr_);
    });
    return squares_;
  }

 private:
  // What the cycle keeps on a level.
  struct Stage {
    Stage(const Level& level, MPI_Comm communicator)
        : grid(level, communicator), side(level.brick), even(level.brick), odd(level.brick),
          product(level.brick) {}
    Grid grid;
    Field side;       // the right side: on the finest level r, on others the residual above
    Field even, odd;  // the result, after so many sweeps
    Field product;    // A times the result
  };

  // How often the body calls each kernel of kernel_names.
  using Calls = std::array<int, 5>;

  template <class Run>
  void loop(const Loop& loop, const Calls& calls, Run&& run) {
    runner_->loop(loop, [this, &level = loop.level, calls, run](std::size_t block) {
      const auto start = std::chrono::steady_clock::now();
      const Box& box = level.brick.blocks()[block];
      if (problem_.sleep()) {
        sleep(box, calls);
      } else {
        run(block, box);
      }
      const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
      kernel_ns_.fetch_add(took.count(), std::memory_order_relaxed);
    });
  }

  void sleep(const Box& box, const Calls& calls) const {
    double seconds = 0;
    for (std::size_t kernel = 0; kernel < calls.size(); ++kernel) {
      seconds += calls[kernel] * problem_.times()[kernel];
    }
    const auto whole = static_cast<double>(finest_.brick.owned().count());
    tiled::sleep_precisely(seconds * static_cast<double>(box.count()) / whole);
  }

  void add_smooth(Stage& stage, Field& from, Field& to, int urgency) {
    runner_->exchange(stage.grid, from);
    loop({.name = "smooth", .level = stage.grid.level, .reads = {&stage.side},
          .reads_around = {&from}, .writes = {&to}, .urgency = urgency},
         {1, 0, 0, 0, 0}, [&stage, &from, &to](std::size_t block, const Box&) {
           smooth(stage.grid.level, block, stage.side.values, from.values, to.values);
         });
  }

  void add_residual(Stage& fine, Stage& coarse) {
    runner_->exchange(fine.grid, fine.odd);
    loop({.name = "residual", .level = fine.grid.level, .reads_around = {&fine.odd},
          .writes = {&fine.product}, .urgency = coarse_urgency},
         {0, 1, 0, 0, 0}, [&fine](std::size_t block, const Box& box) {
           const Level& level = fine.grid.level;
           sparse::multiply(level.brick, box, level.operators[block].rows, fine.odd.values,
                            fine.product.values);
         });
    const Loop::Near& near = coarse.grid.level.finer;
    loop({.name = "restrict", .level = coarse.grid.level,
          .reads_near = {{&fine.side, &near}, {&fine.product, &near}}, .writes = {&coarse.side},
          .urgency = coarse_urgency},
         {0, 0, 0, 0, 1}, [&fine, &coarse](std::size_t block, const Box&) {
           restrict_residual(fine.grid.level, coarse.grid.level, block, fine.side.values,
                             fine.product.values, coarse.side.values);
         });
  }

  void add_correction(Stage& fine, Stage& coarse, Field& correction) {
    loop({.name = "prolong", .level = fine.grid.level,
          .reads_near = {{&correction, &fine.grid.level.coarser}}, .writes = {&fine.odd},
          .urgency = coarse_urgency},
         {0, 0, 0, 0, 1}, [&fine, &coarse, &correction](std::size_t block, const Box&) {
           prolong(fine.grid.level, coarse.grid.level, block, correction.values, fine.odd.values);
         });
  }

  void add_iteration(bool preconditioned) {
    if (preconditioned) {
      add_cycle(0);
    } else {
      loop({.name = "copy", .level = finest_, .reads = {&r()}, .writes = {&z()}}, {0, 0, 1, 0, 0},
           [this](std::size_t, const Box& box) {
             sparse::add(finest_.brick, box, r().values, 0, r().values, z().values);
           });
    }
    loop({.name = "r z", .level = finest_, .reads = {&r(), &z()}, .parts = &rz_}, {0, 0, 0, 1, 0},
         [this](std::size_t block, const Box& box) {
           rz_.parts[block] = sparse::dot(finest_.brick, box, r().values, z().values);
         });
    runner_->sum(rz_);
    loop({.name = "turn", .level = finest_, .reads = {&z()}, .writes = {&p_}, .after = &rz_},
         {0, 0, 1, 0, 0}, [this](std::size_t, const Box& box) {
           sparse::add(finest_.brick, box, z().values, beta_, p_.values, p_.values);
         });
    add_multiply();
    runner_->sum(pap_);
    loop({.name = "advance", .level = finest_, .reads = {&p_}, .writes = {&x_}, .after = &pap_,
          .urgency = 0},  // nobody waits for the solution
         {0, 0, 1, 0, 0}, [this](std::size_t, const Box& box) {
           sparse::add(finest_.brick, box, x_.values, alpha_, p_.values, x_.values);
         });
    loop({.name = "reduce", .level = finest_, .reads = {&ap_}, .writes = {&r()}, .after = &pap_},
         {0, 0, 1, 0, 0}, [this](std::size_t, const Box& box) {
           sparse::add(finest_.brick, box, r().values, -alpha_, ap_.values, r().values);
         });
    add_squares();
  }

  void add_squares() {
    loop({.name = "r r", .level = finest_, .reads = {&r()}, .parts = &rr_, .urgency = 0},
         {0, 0, 0, 1, 0}, [this](std::size_t block, const Box& box) {
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
  double squares_ = 0;                       // of r
  std::atomic<std::int64_t> kernel_ns_ = 0;  // relaxed: a statistic
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
