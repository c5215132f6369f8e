// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients on the operator of 27 points: the tasks of apps/minife and apps/hpcg, variant
// `tasks`. The geometry, the steps and the accesses of tasks are the applications' own code
// (apps/sparse/steps.hpp, apps/minife/algorithm.hpp, apps/hpcg/algorithm.hpp).
#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "hpcg/algorithm.hpp"
#include "imbrex/error.hpp"
#include "minife/algorithm.hpp"
#include "simulate/programs/programs.hpp"
#include "sparse/steps.hpp"

namespace imbrex::simulate {

namespace {

using sparse::Brick;

enum Kind : std::uint16_t { loop_kind, send_kind, receive_kind, sum_kind, round_kind };

// Adds the tasks of one rank to a batch, and runs no body.
class Runner final : public sparse::Runner {
 public:
  // `times` of the kernels on all points of `finest`, in nanoseconds.
  Runner(const int rank, const int ranks, const Brick& finest, const std::vector<double>& times)
      : sparse::Runner(finest, times), rank_(rank), ranks_(ranks) {}

  void into(Batch& batch) noexcept { batch_ = &batch; }

  void loop(const sparse::Loop& loop, Body) override {
    const std::vector<bool> border = loop.brick.borders();
    for (std::size_t block = 0; block < border.size(); ++block) {
      const double ns = time_of(loop.calls, loop.brick.blocks()[block]);
      Builder task(*batch_, {.kernel = loop_kind, .duration = simulate::time_of(ns)});
      declare_body(task, loop, block, border[block]);
    }
  }
  void exchange(sparse::Grid& grid, sparse::Field& field) override {
    const auto& neighbours = grid.brick.neighbours();
    for (std::size_t n = 0; n < neighbours.size(); ++n) {
      // Messages of a neighbour follow each other, so one tag is enough for a grid.
      TaskPlan plan{.kernel = receive_kind,
                    .role = Role::receive,
                    .peer = neighbours[n].rank,
                    .tag = static_cast<int>(grid.number),
                    .bytes = neighbours[n].receive.count() * 8};
      Builder receive(*batch_, plan);
      declare_receive(receive, grid, field, n);
      plan.kernel = send_kind;
      plan.role = Role::send;
      plan.bytes = neighbours[n].send.count() * 8;
      Builder send(*batch_, plan);
      declare_send(send, grid, field, n);
    }
  }
  // A task, and the messages of its MPI_Allreduce: in round k each rank sends to the rank 2^k
  // behind it (dissemination, Hensgen, Finkel and Manber, 1988).
  void sum(sparse::Sum& sum) override {
    constexpr int first_tag = 100;  // of the first sum: grids have the tags below
    char* from = rounds_[sum.number].data();
    Builder task(*batch_, {.kernel = sum_kind, .duration = 0});
    declare_sum(task, sum, ranks_ == 1 ? sum.result : *from);
    int tag = first_tag * (static_cast<int>(sum.number) + 1);
    for (std::int64_t step = 1; step < ranks_; step *= 2, from += 2, tag += 2) {
      const auto distance = static_cast<int>(step);
      TaskPlan plan{.kernel = round_kind,
                    .role = Role::receive,
                    .by_library = true,
                    .peer = (rank_ - distance + ranks_) % ranks_,
                    .tag = tag,
                    .bytes = 8};
      Builder(*batch_, plan).out(from[1]);
      plan.role = Role::send;
      plan.peer = (rank_ + distance) % ranks_;
      Builder(*batch_, plan).in(from[0]);
      Builder(*batch_, {.kernel = round_kind, .by_library = true})
          .in(from[0])
          .in(from[1])
          .out(2 * step < ranks_ ? from[2] : sum.result);
    }
  }
  [[nodiscard]] bool has_values() const noexcept override { return false; }

 private:
  static constexpr int rounds_max = 32;

  const int rank_;
  const int ranks_;
  Batch* batch_ = nullptr;
  // Each sum has for each round the names of what a rank has and of what it receives.
  std::map<std::size_t, std::array<char, 2 * rounds_max>> rounds_;
};

// A rank of apps/minife.
struct MiniFe {
  static constexpr std::array kernels{"multiply", "add", "dot"};

  MiniFe(const GradientsSetup& setup, const int rank, const std::vector<double>& times)
      : brick(shape(setup), rank), runner(rank, setup.ranks, brick, times) {}
  [[nodiscard]] static sparse::BrickShape shape(const GradientsSetup& setup) {
    return minife::nodes_of(sparse::grid_of_cubes(setup.n, setup.ranks, setup.blocks));
  }
  void add() { algorithm.add(); }

  const Brick brick;
  Runner runner;
  const minife::System system;
  minife::Algorithm algorithm{brick, system, runner, {}};
};

// A rank of apps/hpcg.
struct Hpcg {
  static constexpr std::array kernels{"smooth", "multiply", "add", "dot", "fill"};

  Hpcg(const GradientsSetup& setup, const int rank, const std::vector<double>& times)
      : levels(hpcg::make_levels(shape(setup), rank, false)),
        runner(rank, setup.ranks, levels.front()->brick, times) {}
  [[nodiscard]] static sparse::BrickShape shape(const GradientsSetup& setup) {
    if (setup.n % hpcg::divisor != 0) {
      throw Error(fmt::format("n = {} is not a multiple of {}", setup.n, hpcg::divisor));
    }
    return sparse::grid_of_cubes(setup.n, setup.ranks, setup.blocks);
  }
  void add() { algorithm.add(true); }

  const std::vector<std::unique_ptr<hpcg::Level>> levels;
  Runner runner;
  hpcg::Algorithm algorithm{levels, runner};
};

template <class Rank>
class Gradients final : public Program {
 public:
  Gradients(const GradientsSetup& setup, const DurationOf& duration_of)
      : iterations_(setup.iterations), done_(static_cast<std::size_t>(setup.ranks), 0) {
    std::vector<double> times;
    for (const char* const name : Rank::kernels) {
      times.push_back(static_cast<double>(duration_of(name)));
    }
    for (int rank = 0; rank < setup.ranks; ++rank) {
      ranks_.push_back(std::make_unique<Rank>(setup, rank, times));
    }
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(const int rank, Batch& batch) override {
    const auto index = static_cast<std::size_t>(rank);
    Rank& mine = *ranks_[index];
    mine.runner.into(batch);
    if (done_[index] == 0) {
      mine.algorithm.add_first();
    } else {
      mine.add();
    }
    return ++done_[index] <= iterations_;
  }

 private:
  const int iterations_;
  const std::vector<Kernel> kernels_{
      {"loop", 0}, {"send", 0}, {"receive", 0}, {"sum", 0}, {"round", 0}};
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<int> done_;  // calls of each rank
};

}  // namespace

std::unique_ptr<Program> make_gradients(const GradientsSetup& setup,
                                        const DurationOf& duration_of) {
  if (setup.multigrid) return std::make_unique<Gradients<Hpcg>>(setup, duration_of);
  return std::make_unique<Gradients<MiniFe>>(setup, duration_of);
}

}  // namespace imbrex::simulate
