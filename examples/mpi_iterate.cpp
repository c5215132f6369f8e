// SPDX-License-Identifier: BSD-3-Clause
// Heat in a rod that is divided among the ranks, until it changes no more. The tasks of ten
// iterations are created once, and run again and again; the last of the ten asks all ranks whether
// the change is small enough.
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

constexpr int blocks = 4, width = 2, most = 100000, period = 10;  // few points, for a short run
constexpr double enough = 1e-5;
using Block = std::array<double, width>;
using Rod = std::array<Block, blocks + 2>;  // of one rank; the first and last: received blocks

double relax(const Block& before, const Block& u, const Block& after, Block& v) {
  double change = 0;
  for (std::size_t x = 0; x < width; ++x) {
    v[x] = ((x > 0 ? u[x - 1] : before.back()) + (x + 1 < width ? u[x + 1] : after.front())) / 2;
    change = std::max(change, std::abs(v[x] - u[x]));
  }
  return change;
}

void exchange(const Block& mine, Block& halo, int neighbour) {
  MPI_Sendrecv(mine.data(), width, MPI_DOUBLE, neighbour, 0, halo.data(), width, MPI_DOUBLE,
               neighbour, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;

  std::array<Rod, 2> rods{};
  if (rank == 0) {  // one end is hot, the other cold
    for (Rod& rod : rods) rod.front().fill(100.0);
  }
  std::array<double, blocks + 2> changes{};
  std::int64_t iterations = 0;

  imbrex::iterate(most, {.period = period}, [&](std::int64_t i) {
    Rod& u = rods[i % 2];
    Rod& v = rods[(i + 1) % 2];
    imbrex::task("halo").in(u[1]).out(u[0]).launch([&u, left] { exchange(u[1], u[0], left); });
    imbrex::task("halo").in(u[blocks]).out(u[blocks + 1]).launch([&u, right] {
      exchange(u[blocks], u[blocks + 1], right);
    });
    for (std::size_t b = 1; b <= blocks; ++b) {
      imbrex::task("relax").in(u[b - 1], u[b], u[b + 1]).out(v[b], changes[b]).launch([&, b] {
        changes[b] = relax(u[b - 1], u[b], u[b + 1], v[b]);
      });
    }
    if (i % period == period - 1) {
      imbrex::task("test").in(changes[1], changes[2], changes[3], changes[4]).decides().launch(
          [&](std::int64_t iteration) {
            double change = *std::max_element(changes.begin(), changes.end());
            MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (change > enough) return;
            imbrex::stop_iterating();
            iterations = iteration + 1;
          });
    }
  });

  double error = 0;  // the heat falls along a line
  const int points = blocks * width;
  for (int x = 0; x < points; ++x) {
    const double line = 100.0 - 100.0 * (rank * points + x + 1) / (ranks * points + 1);
    error = std::max(error, std::abs(rods[0][std::size_t(1 + x / width)][x % width] - line));
  }
  std::printf("rank %d: %d iterations, error %.4f\n", rank, int(iterations), error);
  MPI_Finalize();
  return iterations > 0 && error < 0.01 ? 0 : 1;
}
