// SPDX-License-Identifier: BSD-3-Clause
// Heat in a ring that is divided among the ranks of a Cartesian communicator: in each step both
// ends of a rank's piece go to its neighbours, and the middle is computed meanwhile.
#include <imbrex/collective.hpp>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int is_ring = 1;
  MPI_Comm ring = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &is_ring, 0, &ring);

  constexpr int below = 0;  // the neighbours, in MPI's order
  constexpr int above = 1;
  constexpr std::size_t points = 2000;
  constexpr int steps = 100;
  std::vector<double> from(points, 0.0);
  std::vector<double> to(points, 0.0);
  if (rank == 0) from[0] = 1000.0;
  const auto average = [](double left, double here, double right) {
    return here + 0.25 * (left - 2 * here + right);
  };

  for (int step = 0; step < steps; ++step) {
    std::array<double, 2> ends{};
    std::array<double, 2> halo{};
    const imbrex::Collective x = imbrex::neighbor_alltoall(
        {ends.data(), 1, MPI_DOUBLE}, {halo.data(), 1, MPI_DOUBLE}, ring, {.hold = true});
    imbrex::finish([&] {
      imbrex::task("middle").launch([&] {
        for (std::size_t i = 1; i + 1 < points; ++i) {
          to[i] = average(from[i - 1], from[i], from[i + 1]);
        }
      });
      imbrex::task("first").in(x.from(below)).launch(
          [&] { to[0] = average(halo[0], from[0], from[1]); });
      imbrex::task("last").in(x.from(above)).launch([&] {
        to[points - 1] = average(from[points - 2], from[points - 1], halo[1]);
      });
      ends = {from[0], from[points - 1]};
      x.send(below);
      x.send(above);
    });
    x.all().get();
    from.swap(to);
  }

  double heat = 0.0;  // is conserved, and spreads to both sides alike
  for (const double it : from) heat += it;
  MPI_Allreduce(MPI_IN_PLACE, &heat, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  double last = from[points - 1];
  MPI_Bcast(&last, 1, MPI_DOUBLE, ranks - 1, MPI_COMM_WORLD);
  const bool is_right =
      std::abs(heat - 1000.0) < 1e-6 && (rank != 0 || std::abs(from[1] - last) < 1e-9);
  if (rank == 0) std::printf("heat after %d steps: %.6f\n", steps, heat);
  MPI_Comm_free(&ring);
  MPI_Finalize();
  return is_right ? 0 : 1;
}
