// SPDX-License-Identifier: BSD-3-Clause
#include "solve.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace minife {

using sparse::Box;
using sparse::Brick;
using sparse::Halo;
using sparse::TestEach;

namespace {

constexpr int sends_first = 2;    // priorities
constexpr int borders_first = 1;  // what a message waits for

// The bodies of all tasks. Where a sub-block's numbers are written, and by which task, is for the
// callers to order.
class Iteration {
 public:
  Iteration(const Kernels& kernels, Vectors& vectors, bool reports, int planned)
      : kernels_(kernels), brick_(kernels.brick()), v_(vectors), reports_(reports),
        planned_(planned), parts_(brick_.blocks().size(), 1.0) {
    for (auto* const vector : {&v_.x, &v_.r, &v_.p, &v_.ap}) vector->assign(brick_.size(), 0);
    v_.r = kernels.system().load;  // x = 0
    v_.p = v_.r;
  }

  void begin(std::size_t block) {  // for set_first()
    timed(block, {0, 0, 1}, [&](const Box& box) {
      parts_[block] = sparse::dot(brick_, box, v_.r, v_.r);
    });
  }
  void multiply(std::size_t block) {  // for set_alpha()
    timed(block, {1, 0, 1}, [&](const Box& box) {
      sparse::multiply(brick_, box, kernels_.system().rows[block], v_.p, v_.ap);
      parts_[block] = sparse::dot(brick_, box, v_.ap, v_.p);
    });
  }
  void advance(std::size_t block) {
    timed(block, {0, 1, 0}, [&](const Box& box) {
      sparse::add(brick_, box, v_.x, alpha_, v_.p, v_.x);
    });
  }
  void reduce(std::size_t block) {  // for set_beta()
    timed(block, {0, 1, 1}, [&](const Box& box) {
      sparse::add(brick_, box, v_.r, -alpha_, v_.ap, v_.r);
      parts_[block] = sparse::dot(brick_, box, v_.r, v_.r);
    });
  }
  void turn(std::size_t block) {
    timed(block, {0, 1, 0}, [&](const Box& box) {
      sparse::add(brick_, box, v_.r, beta_, v_.p, v_.p);
    });
  }

  // This rank's part of a sum, in the order of the sub-blocks.
  [[nodiscard]] double part() const { return std::accumulate(parts_.begin(), parts_.end(), 0.0); }
  void set_first(double squares) { squares_ = squares; }
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

  [[nodiscard]] double kernel_s() const {
    return 1e-9 * static_cast<double>(kernel_ns_.load(std::memory_order_relaxed));
  }
  [[nodiscard]] int iterations() const { return iterations_; }
  [[nodiscard]] double residual() const { return std::sqrt(squares_); }

 private:
  template <class Run>
  void timed(std::size_t block, const Kernels::Calls& calls, Run&& run) {
    const auto start = std::chrono::steady_clock::now();
    if (!kernels_.slept(block, calls)) run(brick_.blocks()[block]);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    kernel_ns_.fetch_add(took.count(), std::memory_order_relaxed);
  }

  // Where a run takes long, a line of the first rank every few seconds.
  void report() {
    constexpr std::chrono::seconds pause(10);
    const auto now = std::chrono::steady_clock::now();
    if (!reports_ || now - reported_ < pause) return;
    reported_ = now;
    fmt::print(stderr, "iteration {} of {}, residual {:.1e}\n", done_, planned_, residual());
  }

  const Kernels& kernels_;
  const Brick& brick_;
  Vectors& v_;
  const bool reports_;
  const int planned_;  // iterations,
  int done_ = 0;       // and those that are carried out
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
  std::vector<double> parts_;  // by sub-block, of the sum under way
  double alpha_ = 0;
  double beta_ = 0;
  double squares_ = 0;  // of r
  int iterations_ = 0;
  std::atomic<std::int64_t> kernel_ns_ = 0;  // relaxed: a statistic
};

class Blocking {
 public:
  Blocking(Iteration& iteration, Halo& halo, const Brick& brick, MPI_Comm communicator)
      : iteration_(iteration), halo_(halo), brick_(brick), communicator_(communicator) {}

  // The seconds in MPI.
  double run(int iterations, Vectors& vectors) {
    loop([this](std::size_t block) { iteration_.begin(block); });
    iteration_.set_first(sum());
    for (int i = 0; i < iterations; ++i) {
      mpi_s_ += halo_.exchange(vectors.p);
      loop([this](std::size_t block) { iteration_.multiply(block); });
      iteration_.set_alpha(sum());
      loop([this](std::size_t block) {
        iteration_.advance(block);
        iteration_.reduce(block);
      });
      iteration_.set_beta(sum());
      loop([this](std::size_t block) { iteration_.turn(block); });
    }
    return mpi_s_;
  }

 private:
  template <class Body>
  void loop(const Body& body) const {
    imbrex::finish([&] {
      for (std::size_t block = 0; block < brick_.blocks().size(); ++block) {
        imbrex::task("share of a loop").launch([&body, block] { body(block); });
      }
    });
  }
  double sum() {
    const double start = MPI_Wtime();
    const double sum = sparse::sum_on_main(iteration_.part(), communicator_);
    mpi_s_ += MPI_Wtime() - start;
    return sum;
  }

  Iteration& iteration_;
  Halo& halo_;
  const Brick& brick_;
  const MPI_Comm communicator_;
  double mpi_s_ = 0;
};

// Each char names what a task reads and writes: the part of a vector on one sub-block, or a layer.
class Graph {
 public:
  Graph(Iteration& iteration, Halo& halo, const Brick& brick, MPI_Comm communicator,
        Vectors& vectors, TestEach* tests)
      : iteration_(iteration), halo_(halo), brick_(brick), communicator_(communicator),
        vectors_(vectors), tests_(tests), blocks_(brick.blocks().size()),
        x_(blocks_), r_(blocks_), p_(blocks_), ap_(blocks_), parts_(blocks_),
        sent_(brick.neighbours().size()), layers_(brick.neighbours().size()) {
    const std::vector<bool> border = brick.borders();
    for (const bool first : {true, false}) {
      for (std::size_t block = 0; block < blocks_; ++block) {
        if (border[block] == first) order_.push_back(block);
      }
      if (first) borders_ = order_.size();
    }
  }

  void spawn(int iterations) {
    for (std::size_t block = 0; block < blocks_; ++block) {
      imbrex::task("begin").in(r_[block]).out(parts_[block]).launch([=, this] {
        run(&Iteration::begin, block);
      });
    }
    spawn_sum("sum of squares", squares_, &Iteration::set_first);
    for (int i = 0; i < iterations; ++i) {
      spawn_messages();
      spawn_multiply();
      spawn_sum("sum for alpha", alpha_, &Iteration::set_alpha);
      spawn_reduce();
      spawn_sum("sum for beta", beta_, &Iteration::set_beta);
      spawn_turn();
    }
  }

 private:
  static std::size_t index(int block) { return static_cast<std::size_t>(block); }

  void run(void (Iteration::*body)(std::size_t), std::size_t block) {
    (iteration_.*body)(block);
    if (tests_ != nullptr) tests_->poll();
  }

  void spawn_messages() {
    for (std::size_t n = 0; n < sent_.size(); ++n) {
      const auto neighbour = static_cast<int>(n);
      imbrex::task("receive").out(layers_[n]).priority(sends_first).launch([=, this] {
        halo_.receive(vectors_.p, neighbour, tests_);
      });
      auto send = imbrex::task("send").inout(sent_[n]).priority(sends_first);
      for (const int block : brick_.neighbours()[n].touched) (void)send.in(p_[index(block)]);
      send.launch([=, this] { halo_.send(vectors_.p, neighbour, tests_); });
    }
  }

  // Those that wait for no message come first.
  void spawn_multiply() {
    for (std::size_t place = blocks_; place-- > 0;) {
      const std::size_t block = order_[place];
      auto multiply = imbrex::task("multiply").out(ap_[block], parts_[block]);
      const int number = static_cast<int>(block);
      for (const int other : brick_.around(number)) (void)multiply.in(p_[index(other)]);
      for (const int layer : brick_.awaited(number)) (void)multiply.in(layers_[index(layer)]);
      multiply.launch([=, this] { run(&Iteration::multiply, block); });
    }
  }

  void spawn_sum(imbrex::Name name, char& result, void (Iteration::*set)(double)) {
    auto sum = imbrex::task(name).out(result).priority(sends_first);
    for (const char& part : parts_) (void)sum.in(part);
    sum.launch([=, this] {
      (iteration_.*set)(sparse::sum_over_ranks(iteration_.part(), communicator_, tests_));
    });
  }

  // The solution, which nobody waits for, moves on while the ranks sum.
  void spawn_reduce() {
    for (const std::size_t block : order_) {
      imbrex::task("reduce")
          .in(alpha_, ap_[block])
          .inout(r_[block])
          .out(parts_[block])
          .priority(borders_first)
          .launch([=, this] { run(&Iteration::reduce, block); });
    }
    for (const std::size_t block : order_) {
      imbrex::task("advance").in(alpha_, p_[block]).inout(x_[block]).launch([=, this] {
        run(&Iteration::advance, block);
      });
    }
  }

  void spawn_turn() {
    for (std::size_t place = 0; place < blocks_; ++place) {
      const std::size_t block = order_[place];
      imbrex::task("turn")
          .in(beta_, r_[block])
          .inout(p_[block])
          .priority(place < borders_ ? borders_first : 0)
          .launch([=, this] { run(&Iteration::turn, block); });
    }
  }

  Iteration& iteration_;
  Halo& halo_;
  const Brick& brick_;
  const MPI_Comm communicator_;
  Vectors& vectors_;
  TestEach* const tests_;  // null: calls block
  const std::size_t blocks_;
  std::vector<std::size_t> order_;  // of sub-blocks: those that messages take points of, and others
  std::size_t borders_ = 0;         // of them
  std::vector<char> x_, r_, p_, ap_, parts_;  // by sub-block
  std::vector<char> sent_, layers_;           // by neighbour
  char squares_ = 0, alpha_ = 0, beta_ = 0;
};

}  // namespace

Kernels::Kernels(const Brick& brick, const System& system, tiled::KernelTimes times)
    : brick_(brick), system_(system), times_(std::move(times)) {}

bool Kernels::slept(const std::size_t block, const Calls& calls) const noexcept {
  if (times_.empty()) return false;
  const double share = static_cast<double>(brick_.blocks()[block].count()) /
                       static_cast<double>(brick_.owned().count());
  tiled::sleep_precisely(share * (calls.matvec * times_[0] + calls.waxpby * times_[1] +
                                  calls.dot * times_[2]));
  return true;
}

Outcome solve(const Kernels& kernels, const MPI_Comm communicator, const Variant variant,
              const int iterations, Vectors& vectors) {
  const Brick& brick = kernels.brick();
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  Iteration iteration(kernels, vectors, rank == 0, iterations);
  Halo halo(brick, communicator);
  TestEach tests;
  Graph graph(iteration, halo, brick, communicator, vectors,
              variant == Variant::test_each ? &tests : nullptr);
  Outcome outcome;
  MPI_Barrier(communicator);
  const double start = MPI_Wtime();
  const double in_task_before = imbrex::detail::totals().in_task_s;
  switch (variant) {
    case Variant::blocking:
      outcome.mpi_s = Blocking(iteration, halo, brick, communicator).run(iterations, vectors);
      break;
    case Variant::tasks: imbrex::finish([&] { graph.spawn(iterations); }); break;
    case Variant::test_each: tests.poll_during([&] { graph.spawn(iterations); }); break;
  }
  outcome.seconds = MPI_Wtime() - start;
  outcome.in_task_s = imbrex::detail::totals().in_task_s - in_task_before;
  outcome.kernel_s = iteration.kernel_s();
  outcome.iterations = iteration.iterations();
  outcome.residual = iteration.residual();
  outcome.tests = tests.tests();
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
