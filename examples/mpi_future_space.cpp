// SPDX-License-Identifier: BSD-3-Clause
// Pascal's triangle modulo a prime, over all ranks, without an explicit message. Each cell is a
// distributed future, and a task on its home rank computes it. The task begins when the two cells
// above are there, on whatever rank they were computed.
#include <imbrex/future_space.hpp>
#include <imbrex/imbrex.hpp>

#include <cstdint>
#include <cstdio>

constexpr std::uint64_t rows = 64, prime = 1'000'003;

std::uint64_t guid(std::uint64_t row, std::uint64_t column) { return row * rows + column; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto home = [ranks](std::uint64_t cell) { return static_cast<int>(cell % 7) % ranks; };

  std::uint64_t sum = 0, expected = 1;
  {
    imbrex::FutureSpace<std::uint64_t> cells(MPI_COMM_WORLD, {.home = home, .name = "cells"});
    imbrex::finish([&] {
      for (std::uint64_t row = 0; row < rows; ++row) {
        for (std::uint64_t column = 0; column <= row; ++column) {
          if (home(guid(row, column)) != rank) continue;
          if (column == 0 || column == row) {
            cells.set(guid(row, column), 1);
            continue;
          }
          const auto left = cells[guid(row - 1, column - 1)];  // asks for it, and does not wait
          const auto right = cells[guid(row - 1, column)];
          imbrex::task("cell").in(left, right).launch([&cells, row, column, left, right] {
            cells.set(guid(row, column), (left.get() + right.get()) % prime);
          });
        }
      }
    });
    for (std::uint64_t column = 0; column < rows; ++column) {
      sum = (sum + cells[guid(rows - 1, column)].get()) % prime;
    }
  }  // the space is closed: every rank has what it has asked for
  for (std::uint64_t row = 1; row < rows; ++row) expected = 2 * expected % prime;
  std::printf("rank %d: the last row adds up to %llu\n", rank,
              static_cast<unsigned long long>(sum));
  MPI_Finalize();
  return sum == expected ? 0 : 1;
}
