// SPDX-License-Identifier: BSD-3-Clause
// Heat in a rod that is divided among the ranks: each step's halo travels in tasks, while the
// inner points are computed. Dependencies order the steps; there is no barrier.
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;

  constexpr int points = 2000;  // of one rank; [0] and [points + 1] belong to the neighbours
  constexpr int steps = 400;
  std::vector<double> from(points + 2, 0.0);
  std::vector<double> to(points + 2, 0.0);
  if (rank == 0) from[points / 2] = 1000.0;

  const auto exchange = [](double& mine, double& halo, int neighbour, int tag, int other_tag) {
    imbrex::task("halo").in(mine).out(halo).launch([&mine, &halo, neighbour, tag, other_tag] {
      MPI_Sendrecv(&mine, 1, MPI_DOUBLE, neighbour, tag, &halo, 1, MPI_DOUBLE, neighbour,
                   other_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
  };
  const auto average = [](const double* at) { return at[0] + 0.25 * (at[-1] - 2 * at[0] + at[1]); };

  imbrex::finish([&] {
    for (int step = 0; step < steps; ++step) {
      double* const u = step % 2 == 0 ? from.data() : to.data();
      double* const v = step % 2 == 0 ? to.data() : from.data();
      exchange(u[1], u[0], left, 2 * step, 2 * step + 1);
      exchange(u[points], u[points + 1], right, 2 * step + 1, 2 * step);
      imbrex::task("inner").in(u[1], u[2], u[points]).out(v[2]).launch([=] {
        for (int i = 2; i < points; ++i) v[i] = average(u + i);
      });
      imbrex::task("first").in(u[0], u[1], u[2]).out(v[1]).launch([=] { v[1] = average(u + 1); });
      imbrex::task("last").in(u[2], u[points], u[points + 1]).out(v[points]).launch([=] {
        v[points] = average(u + points);
      });
    }
  });

  double heat = 0.0;  // is conserved
  for (int i = 1; i <= points; ++i) heat += from[static_cast<std::size_t>(i)];
  MPI_Allreduce(MPI_IN_PLACE, &heat, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("heat after %d steps: %.6f\n", steps, heat);
  MPI_Finalize();
  return std::abs(heat - 1000.0) < 1e-6 ? 0 : 1;
}
