// SPDX-License-Identifier: BSD-3-Clause
// Jacobi's iteration on a rod that lies over the ranks, by tasks that live as long as the
// computation. One phaser of all tasks of all ranks keeps them in step; its accumulator tells each
// task how far the rod is from rest anywhere. The tasks at the ends of a rank exchange values with
// the neighbours, between signal() and wait(). The result equals, to the last bit, that of one
// loop.
#include <imbrex/accumulator.hpp>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi_phaser.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

constexpr int points = 120, parts = 4;  // of each rank
constexpr double enough = 1e-3;
using Rod = std::vector<double>;        // and a point of each neighbour, at both ends

// New values for [first, last); the largest change.
double relax(const Rod& old, Rod& now, int first, int last) {
  double change = 0;
  for (int i = first; i < last; ++i) {
    const auto at = static_cast<std::size_t>(i);
    now[at] = 0.5 * (old[at - 1] + old[at + 1]);
    change = std::max(change, std::abs(now[at] - old[at]));
  }
  return change;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;

  Rod even(points + 2, 0.0);
  if (rank == 0) even.front() = 1;
  Rod odd = even;
  int steps = 0;
  imbrex::finish([&] {
    const imbrex::MpiPhaser step(MPI_COMM_WORLD, imbrex::signal_wait);
    const imbrex::Accumulator<double> change(step, imbrex::op::max);
    for (int part = 0; part < parts; ++part) {
      imbrex::task("part").phased(step).launch([&, part, change] {
        const int first = 1 + part * points / parts, last = 1 + (part + 1) * points / parts;
        Rod *old = &even, *now = &odd;
        for (double largest = 1; largest > enough;) {
          change.put(relax(*old, *now, first, last));
          imbrex::Phaser::signal_all();  // others may compute while these two wait for messages
          const auto exchange = [&](int neighbour, int mine, int theirs) {
            MPI_Sendrecv(&(*now)[static_cast<std::size_t>(mine)], 1, MPI_DOUBLE, neighbour, 0,
                         &(*now)[static_cast<std::size_t>(theirs)], 1, MPI_DOUBLE, neighbour, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          };
          if (part == 0) exchange(left, 1, 0);
          if (part == parts - 1) exchange(right, points, points + 1);
          imbrex::Phaser::wait_all();
          largest = change.get();  // of all tasks of all ranks
          imbrex::Phaser::next_all();  // the points of the neighbours are here
          std::swap(old, now);
          if (part == 0) ++steps;
        }
      });
    }
  });

  const int all = ranks * points;
  Rod old(static_cast<std::size_t>(all) + 2, 0.0);
  old.front() = 1;
  Rod now = old;
  int expected = 1;
  for (; relax(old, now, 1, all + 1) > enough; ++expected) old.swap(now);
  const Rod& mine = steps % 2 == 0 ? even : odd;
  const bool same = std::equal(mine.begin() + 1, mine.end() - 1, now.begin() + 1 + rank * points);
  std::printf("rank %d: %d tasks, %d steps; one loop: %d steps, %s values\n", rank, parts, steps,
              expected, same ? "the same" : "other");
  MPI_Finalize();
  return same && steps == expected ? 0 : 1;
}
