// SPDX-License-Identifier: BSD-3-Clause
// Heat in a plate whose rows are divided among the ranks. Each exchange and each block is a task:
// dependencies order the steps, there is no barrier, and inner blocks are computed while rows are
// in flight. With the argument `iterate`, the tasks of two steps are created once and run for all
// steps. mpi_heat_plain.cpp is this program without tasks.
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

constexpr int width = 16384, height = 16, blocks = 8, steps = 100;
using Block = std::vector<double>;            // `height` rows of `width` points
using Plate = std::array<Block, blocks + 2>;  // of one rank; the first and last: received rows

const double* first_row(const Block& block) { return block.data(); }
const double* last_row(const Block& block) { return block.data() + block.size() - width; }

void relax(const double* above, const Block& u, const double* below, Block& v) {
  for (int i = 0; i < height; ++i) {
    const double* const row = u.data() + i * width;
    const double* const up = i > 0 ? row - width : above;
    const double* const down = i + 1 < height ? row + width : below;
    double* const to = v.data() + i * width;
    for (int j = 1; j + 1 < width; ++j) {
      to[j] = row[j] + 0.2 * (up[j] + down[j] + row[j - 1] + row[j + 1] - 4 * row[j]);
    }
  }
}

void exchange(const double* mine, Block& halo, int neighbour) {
  MPI_Sendrecv(mine, width, MPI_DOUBLE, neighbour, 0, halo.data(), width, MPI_DOUBLE, neighbour, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;

  std::array<Plate, 2> plates;
  for (Plate& plate : plates) {
    plate.fill(Block(height * width, 0.0));
    plate.front() = plate.back() = Block(width, 0.0);
  }
  const int hot = ranks * blocks / 2;  // the block in the middle of the whole plate
  if (rank == hot / blocks) plates[0][1 + hot % blocks][width / 2] = 1000.0;

  const auto create_step = [&](const std::int64_t step) {
    Plate& u = plates[step % 2];
    Plate& v = plates[(step + 1) % 2];
    imbrex::task("halo").in(u[1]).out(u[0]).launch([&u, above] {
      exchange(first_row(u[1]), u[0], above);
    });
    imbrex::task("halo").in(u[blocks]).out(u[blocks + 1]).launch([&u, below] {
      exchange(last_row(u[blocks]), u[blocks + 1], below);
    });
    for (int b = 1; b <= blocks; ++b) {
      imbrex::task("relax").in(u[b - 1], u[b], u[b + 1]).out(v[b]).launch([&u, &v, b] {
        relax(last_row(u[b - 1]), u[b], first_row(u[b + 1]), v[b]);
      });
    }
  };

  const double begin = MPI_Wtime();
  if (argc > 1 && std::strcmp(argv[1], "iterate") == 0) {
    imbrex::iterate(steps, {.period = 2}, create_step);
  } else {
    imbrex::finish([&] {
      for (int step = 0; step < steps; ++step) create_step(step);
    });
  }

  const double seconds = MPI_Wtime() - begin;

  double heat = 0.0;  // is conserved
  for (int b = 1; b <= blocks; ++b) {
    for (const double value : plates[steps % 2][b]) heat += value;
  }
  MPI_Allreduce(MPI_IN_PLACE, &heat, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("heat %.6f, %d steps in %.2f s\n", heat, steps, seconds);
  MPI_Finalize();
  return std::abs(heat - 1000.0) < 1e-6 ? 0 : 1;
}
