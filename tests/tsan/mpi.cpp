// SPDX-License-Identifier: BSD-3-Clause
// Under ThreadSanitizer, with MPI: each rank passes blocks on to the next, in tasks that suspend.
// Everything is ordered; or, with an argument, one task does not name the block that it sends.
#include <mpi.h>

#include <array>
#include <cstdio>
#include <vector>

#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool missing = argc > 1;
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  constexpr int count = 20;
  constexpr int length = 2000;  // longer than a message that is sent at once
  using Block = std::vector<double>;
  std::vector<Block> in(count, Block(length));
  std::vector<Block> out(count, Block(length));
  double sum = 0;
  imbrex::finish([&] {
    for (std::size_t i = 0; i < count; ++i) {
      Block& mine = in[i];
      Block& theirs = out[i];
      const int tag = static_cast<int>(i);
      imbrex::task("receive").out(mine[0]).launch([&mine, previous, tag] {
        MPI_Recv(mine.data(), length, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        mine[1] += 1;
      });
      imbrex::task("add").in(mine[0]).mutexinoutset(sum).launch([&mine, &sum] {
        for (const double value : mine) sum += value;
      });
      imbrex::task("make").out(theirs[0]).launch([&theirs, tag] {
        for (double& value : theirs) value = tag;
      });
      auto send = imbrex::task("send");
      if (!missing) (void)send.in(theirs[0]);
      send.launch([&theirs, next, tag] {
        theirs[3] += 0;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(theirs.data(), length, MPI_DOUBLE, next, tag, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      });
    }
  });
  double total = 0;
  MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  std::array<double, 3> value{};
  imbrex::task("all").out(value[0]).launch([&value] { MPI_Barrier(MPI_COMM_WORLD); value[0] = 1; });
  imbrex::taskwait();
  const bool good = missing || total == size * (length * count * (count - 1) / 2.0 + count);
  if (!good || value[0] != 1) std::printf("FAILS: %g\n", total);
  MPI_Finalize();
  return good ? 0 : 1;
}
