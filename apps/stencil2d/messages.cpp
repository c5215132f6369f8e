// SPDX-License-Identifier: BSD-3-Clause
#include "messages.hpp"

#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include "balance.hpp"

namespace stencil2d {

Messages::Messages(const tiled::Team& team, const Problem& problem, const Kernels& kernels,
                   const Options& options)
    : team_(team), problem_(problem), kernels_(kernels),
      iterates_(options.variant == Variant::iterate),
      owners_(distribute_evenly(problem, team.size())), cells_(index(problem.count())),
      edges_(index(problem.count())), periods_(team, problem, options.every) {
  const auto make_edges = [&](const int block) {
    for (std::vector<double>& edges : edges_[index(block)]) {
      edges.resize(sides * index(problem.side));
    }
  };
  for (int block = 0; block < problem.count(); ++block) {
    if (!is_mine(block)) continue;
    mine_.push_back(block);
    cells_[index(block)].resize(problem.cells());
    make_edges(block);
    for (int side = 0; side < sides; ++side) {
      const int other = neighbour(problem, block, side);
      if (other < 0 || is_mine(other)) continue;
      make_edges(other);
      ++messages_;
    }
  }
}

void Messages::run() {
  imbrex::finish([this] {
    for (const int block : mine_) create_fill(block);
    if (iterates_) {
      steps_.iterate(0, problem_.steps, 2, [this](const int step) { create_step(step); });
    } else {
      for (int step = 0; step < problem_.steps; ++step) create_step(step);
    }
  });
}

void Messages::create_fill(const int block) {
  std::vector<double>& cells = cells_[index(block)];
  imbrex::task("fill").out(cells, *edge(0, block, 0)).launch([this, &cells, block] {
    fill(problem_, block, cells.data());
    copy_edges(problem_, cells.data(), edge(0, block, 0));
  });
}

// Step s reads the edges of one set and writes those of the other.
void Messages::create_step(const int step) {
  for (const int block : mine_) {
    for (int side = 0; side < sides; ++side) create_exchange(step, block, side);
    create_advance(step, block);
  }
}

// The edges of a block of this rank have one name, that of the first edge, and those of another
// rank's block one name each, since they arrive one by one.
void Messages::create_exchange(const int step, const int block, const int side) {
  const int other = neighbour(problem_, block, side);
  if (other < 0 || is_mine(other)) return;
  const int rank = owners_[index(other)];
  // Messages of even and of odd steps may be in flight at once.
  const auto tag = [step](const int from, const int its_side) {
    return 2 * (sides * from + its_side) + step % 2;
  };
  imbrex::task("send").in(*edge(step, block, 0)).priority(1).launch(
      [this, rank, from = edge(step, block, side), tag = tag(block, side)] {
        MPI_Send(from, problem_.side, MPI_DOUBLE, rank, tag, team_.all());
      });
  double* const to = edge(step, other, opposite[index(side)]);
  imbrex::task("receive").out(*to).priority(1).launch(
      [this, rank, to, tag = tag(other, opposite[index(side)])] {
        MPI_Recv(to, problem_.side, MPI_DOUBLE, rank, tag, team_.all(), MPI_STATUS_IGNORE);
      });
}

void Messages::create_advance(const int step, const int block) {
  std::vector<double>& cells = cells_[index(block)];
  imbrex::TaskBuilder task = imbrex::task("step");
  (void)task.inout(cells).out(*edge(step + 1, block, 0));
  for (int side = 0; side < sides; ++side) {
    const int other = neighbour(problem_, block, side);
    if (other < 0) continue;
    (void)task.in(*edge(step, other, is_mine(other) ? 0 : int{opposite[index(side)]}));
  }
  steps_.launch(task, step, [this, &cells, block](const int now) {
    Halo halo{};
    for (int side = 0; side < sides; ++side) {
      const int other = neighbour(problem_, block, side);
      if (other >= 0) halo[index(side)] = edge(now, other, opposite[index(side)]);
    }
    periods_.add(block, now,
                 kernels_.advance_ns(problem_, cells.data(), halo, problem_.cost(block, now)));
    copy_edges(problem_, cells.data(), edge(now + 1, block, 0));
  });
}

Outcome Messages::outcome(const std::vector<double>& expected) {
  const std::int64_t bytes = messages_ * problem_.steps * problem_.side *
                             static_cast<std::int64_t>(sizeof(double));
  return periods_.outcome(owners_, bytes, is_right(team_, problem_, owners_, expected,
                                                   [this](const int block) {
                                                     return cells_[index(block)].data();
                                                   }));
}

}  // namespace stencil2d
