// SPDX-License-Identifier: BSD-3-Clause
#include "run.hpp"

#include <imbrex/data.hpp>
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "balance.hpp"
#include "messages.hpp"
#include "periods.hpp"

namespace stencil2d {

using imbrex::View;
using imbrex::Views;

namespace {

std::int64_t thread_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

constexpr double worth_moving = 0.95;  // of the imbalance before

class Stencil {
 public:
  Stencil(const tiled::Team& team, const Problem& problem, const Kernels& kernels,
          const Options& options)
      : team_(team),
        problem_(problem),
        kernels_(kernels),
        options_(options),
        curve_(curve(problem.blocks)),
        owners_(distribute_evenly(problem, team.size())),
        periods_(team, problem, options.every),
        space_(team.all(), {.name = "stencil2d"}) {
    for (int block = 0; block < problem_.count(); ++block) {
      const int owner = owners_[index(block)];
      cells_.push_back(space_.data<double>(owner, problem_.cells()));
      for (auto& edges : edges_) {
        edges.push_back(space_.data<double>(owner, sides * static_cast<std::size_t>(problem.side)));
      }
    }
  }

  void run() {
    for (int block = 0; block < problem_.count(); ++block) insert_fill(block);
    for (int step = 0; step < problem_.steps; ++step) {
      if (options_.variant == Variant::moving && step > 0 && step % options_.every == 0) {
        space_.finish();
        end_period();
      }
      for (int block = 0; block < problem_.count(); ++block) insert_step(block, step);
    }
    space_.finish();
  }

  // After run(): what it has not yet asked the ranks for. Collective.
  [[nodiscard]] Outcome outcome(const std::vector<double>& expected) {
    const auto bytes = static_cast<std::int64_t>(space_.counters().bytes_sent);
    const auto cells_of = [this](const int block) -> const double* {
      const imbrex::Data<double>& cells = cells_[index(block)];
      return cells.owner() == team_.rank() ? cells.view().data() : nullptr;
    };
    return periods_.outcome(owners_, bytes,
                            is_right(team_, problem_, owners_, expected, cells_of));
  }

 private:
  static std::size_t index(int block) noexcept { return static_cast<std::size_t>(block); }

  void insert_fill(int block) {
    space_.task("fill").out(cells_[index(block)], edges_[0][index(block)]).launch(
        [this, block](View<double> cells, View<double> edges) {
          fill(problem_, block, cells.data());
          copy_edges(problem_, cells.data(), edges.data());
        });
  }

  // Step s reads the edges of one set and writes those of the other. The first datum that a task
  // writes is the block, so it runs where that is.
  void insert_step(int block, int step) {
    const std::vector<imbrex::Data<double>>& read_from = edges_[step % 2];
    std::vector<imbrex::Data<double>> around;
    std::array<int, sides> place;  // in `around`; -1: a wall
    for (int side = 0; side < sides; ++side) {
      const int other = neighbour(problem_, block, side);
      place[index(side)] = other < 0 ? -1 : static_cast<int>(around.size());
      if (other >= 0) around.push_back(read_from[index(other)]);
    }
    space_.task("step")
        .inout(cells_[index(block)])
        .out(edges_[(step + 1) % 2][index(block)])
        .in(around)
        .launch([this, block, step, place](View<double> cells, View<double> edges,
                                           Views<const double> read) {
          Halo halo{};
          for (std::size_t side = 0; side < sides; ++side) {
            if (place[side] < 0) continue;
            halo[side] = read[index(place[side])].data() + opposite[side] * problem_.side;
          }
          periods_.add(block, step,
                       kernels_.advance_ns(problem_, cells.data(), halo,
                                           problem_.cost(block, step)));
          copy_edges(problem_, cells.data(), edges.data());
        });
  }

  // When nothing runs. All ranks have the same numbers, and so decide the same.
  void end_period() {
    const std::vector<std::int64_t> times = periods_.end(owners_);
    const double before = periods_.last().imbalance;
    const std::vector<int> better = distribute(curve_, times, team_.size());
    const double after = imbalance(better, times, team_.size());
    if (after > worth_moving * before) return;
    int moved = 0;
    for (int block = 0; block < problem_.count(); ++block) {
      const int owner = better[index(block)];
      if (owner == owners_[index(block)]) continue;
      ++moved;
      space_.move(cells_[index(block)], owner);
      for (auto& edges : edges_) space_.move(edges[index(block)], owner);
    }
    owners_ = better;
    periods_.last() = {before, after, moved};
  }

  const tiled::Team& team_;
  const Problem& problem_;
  const Kernels& kernels_;
  const Options options_;
  const std::vector<int> curve_;
  std::vector<int> owners_;  // of blocks, as of what is inserted
  Periods periods_;
  imbrex::Space space_;  // waits, at its end, for bodies that use what stands above
  std::vector<imbrex::Data<double>> cells_;
  std::array<std::vector<imbrex::Data<double>>, 2> edges_;  // of even and of odd steps
};

// The seconds of the outcome are from a barrier to the last rank's end.
template <class Computation>
Outcome measure(const tiled::Team& team, Computation&& computation,
                const std::vector<double>& expected) {
  MPI_Barrier(team.all());
  const double start = MPI_Wtime();
  computation.run();
  const double mine = MPI_Wtime() - start;
  Outcome outcome = computation.outcome(expected);
  MPI_Allreduce(&mine, &outcome.seconds, 1, MPI_DOUBLE, MPI_MAX, team.all());
  return outcome;
}

}  // namespace

std::int64_t Kernels::advance_ns(const Problem& problem, double* cells, const Halo& halo,
                                 int cost) const {
  if (slept(0, cost, 1, 1)) return std::llround(1e9 * block_s_ * cost);
  const std::int64_t start = thread_ns();
  advance(problem, cells, halo, cost);
  return thread_ns() - start;
}

tiled::KernelTimes measure_kernels(const Problem& problem) {
  std::vector<double> cells(problem.cells());
  return {tiled::least_time([&] { fill(problem, 0, cells.data()); },
                            [&] { advance(problem, cells.data(), {}, 1); })};
}

Outcome run(const tiled::Team& team, const Problem& problem, const Kernels& kernels,
            const Options& options, const std::vector<double>& expected) {
  if (options.variant == Variant::tasks || options.variant == Variant::iterate) {
    return measure(team, Messages(team, problem, kernels, options), expected);
  }
  return measure(team, Stencil(team, problem, kernels, options), expected);
}

}  // namespace stencil2d
