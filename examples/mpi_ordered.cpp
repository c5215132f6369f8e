// SPDX-License-Identifier: BSD-3-Clause
// Tasks that run in any order call collectives on one communicator: by keys, and by an access, all
// ranks start them in the same order.
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  constexpr std::size_t blocks = 16;
  std::vector<long> sums(blocks);
  imbrex::finish([&] {
    for (std::size_t i = 0; i < blocks; ++i) {
      const std::size_t block = rank % 2 == 0 ? i : blocks - 1 - i;  // any order
      imbrex::task("norm").launch([&sums, rank, block] {
        const long mine = static_cast<long>(block) * (rank + 1);
        const imbrex::CollectiveOrder order = imbrex::order_collectives(block);
        MPI_Allreduce(&mine, &sums[block], 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
      });
    }
  });

  std::vector<long> largest(blocks);
  int order = 0;  // stands for the order, and is never read
  imbrex::finish([&] {
    for (std::size_t block = 0; block < blocks; ++block) {  // the same on all ranks
      imbrex::task("largest").inout(order).launch([&largest, &order, rank, block] {
        const long mine = static_cast<long>(block) * (rank + 1);
        const imbrex::CollectiveOrder scope = imbrex::order_collectives_as_spawned(order);
        MPI_Allreduce(&mine, &largest[block], 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
      });
    }
  });

  int all_right = 1;
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto it = static_cast<long>(block);
    if (sums[block] != it * ranks * (ranks + 1) / 2 || largest[block] != it * ranks) all_right = 0;
  }
  MPI_Allreduce(MPI_IN_PLACE, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%zu collectives: %s\n", 2 * blocks, all_right ? "right" : "WRONG");
  MPI_Finalize();
  return all_right ? 0 : 1;
}
