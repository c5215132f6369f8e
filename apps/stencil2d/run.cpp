// SPDX-License-Identifier: BSD-3-Clause
#include "run.hpp"

#include <imbrex/data.hpp>
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include "balance.hpp"

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
        owners_(distribute(curve_, weights(0), team.size())),
        took_ns_(weights((problem.steps + options.every - 1) / options.every)),
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
      if (options_.moving && step > 0 && step % options_.every == 0) {
        space_.finish();
        end_period(step / options_.every - 1);
      }
      for (int block = 0; block < problem_.count(); ++block) insert_step(block, step);
    }
    space_.finish();
  }

  // After run(): what it has not yet asked the ranks for. Collective.
  [[nodiscard]] Outcome outcome(const std::vector<double>& expected) {
    for (int period = static_cast<int>(periods_.size()); period < periods(); ++period) {
      const std::vector<std::int64_t> times = times_of(period);
      const double found = imbalance(owners_, times, team_.size());
      periods_.push_back({found, found, 0});
      add_weighted(found, times);
    }
    const auto mine = static_cast<std::int64_t>(space_.counters().bytes_sent);
    Outcome outcome{0, std::move(periods_), mean_ > 0 ? longest_ / mean_ : 1, 0,
                    is_right(expected)};
    MPI_Allreduce(&mine, &outcome.bytes_sent, 1, MPI_INT64_T, MPI_SUM, team_.all());
    return outcome;
  }

 private:
  static std::size_t index(int block) noexcept { return static_cast<std::size_t>(block); }
  // Returns `periods` numbers for each block, at least one; all are 0.
  std::vector<std::int64_t> weights(int periods) const {
    return std::vector<std::int64_t>(index(std::max(periods, 1)) * index(problem_.count()), 0);
  }
  int periods() const noexcept {
    return (problem_.steps + options_.every - 1) / options_.every;
  }

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
          constexpr std::array<Side, sides> opposite{south, north, east, west};
          Halo halo{};
          for (std::size_t side = 0; side < sides; ++side) {
            if (place[side] < 0) continue;
            halo[side] = read[index(place[side])].data() + opposite[side] * problem_.side;
          }
          took_ns_[index(step / options_.every * problem_.count() + block)] +=
              kernels_.advance_ns(problem_, cells.data(), halo, problem_.cost(block, step));
          copy_edges(problem_, cells.data(), edges.data());
        });
  }

  // Returns the time of each block in a period, on whichever rank it was. Collective.
  std::vector<std::int64_t> times_of(int period) {
    const int count = problem_.count();
    std::vector<std::int64_t> times(index(count));
    MPI_Allreduce(took_ns_.data() + index(period) * index(count), times.data(), count, MPI_INT64_T,
                  MPI_SUM, team_.all());
    return times;
  }

  // When nothing runs. All ranks have the same numbers, and so decide the same.
  void end_period(int period) {
    const std::vector<std::int64_t> times = times_of(period);
    const double before = imbalance(owners_, times, team_.size());
    add_weighted(before, times);
    const std::vector<int> better = distribute(curve_, times, team_.size());
    const double after = imbalance(better, times, team_.size());
    if (after > worth_moving * before) {
      periods_.push_back({before, before, 0});
      return;
    }
    int moved = 0;
    for (int block = 0; block < problem_.count(); ++block) {
      const int owner = better[index(block)];
      if (owner == owners_[index(block)]) continue;
      ++moved;
      space_.move(cells_[index(block)], owner);
      for (auto& edges : edges_) space_.move(edges[index(block)], owner);
    }
    owners_ = better;
    periods_.push_back({before, after, moved});
  }

  void add_weighted(double imbalance_found, const std::vector<std::int64_t>& times) {
    const auto sum = static_cast<double>(std::accumulate(times.begin(), times.end(),
                                                         std::int64_t{0}));
    longest_ += imbalance_found * sum;
    mean_ += sum;
  }

  bool is_right(const std::vector<double>& expected) const {
    int right = 1;
    for (int block = 0; !expected.empty() && block < problem_.count(); ++block) {
      if (owners_[index(block)] != team_.rank()) continue;
      const imbrex::Data<double>& cells = cells_[index(block)];
      if (cells.owner() != team_.rank() ||
          !is_part(problem_, expected, block, cells.view().data())) {
        right = 0;
      }
    }
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, team_.all());
    return right != 0;
  }

  const tiled::Team& team_;
  const Problem& problem_;
  const Kernels& kernels_;
  const Options options_;
  const std::vector<int> curve_;
  std::vector<int> owners_;  // of blocks, as of what is inserted
  // Indexed by period and block; the tasks of one block write an entry, one after the other.
  std::vector<std::int64_t> took_ns_;
  std::vector<Period> periods_;
  double longest_ = 0;  // of ranks, of all periods, times the number of ranks
  double mean_ = 0;
  imbrex::Space space_;  // waits, at its end, for bodies that use what stands above
  std::vector<imbrex::Data<double>> cells_;
  std::array<std::vector<imbrex::Data<double>>, 2> edges_;  // of even and of odd steps
};

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
  Stencil stencil(team, problem, kernels, options);
  MPI_Barrier(team.all());
  const double start = MPI_Wtime();
  stencil.run();
  const double mine = MPI_Wtime() - start;
  Outcome outcome = stencil.outcome(expected);
  MPI_Allreduce(&mine, &outcome.seconds, 1, MPI_DOUBLE, MPI_MAX, team.all());
  return outcome;
}

}  // namespace stencil2d
