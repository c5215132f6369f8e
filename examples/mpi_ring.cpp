// SPDX-License-Identifier: BSD-3-Clause
// The program of the README: every rank receives before it sends. In plain MPI no rank would reach
// its send; here the receive is a task, and the worker runs the send while the task is suspended.
#include <imbrex/imbrex.hpp>
#include <mpi.h>
#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1, value = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  imbrex::finish([&] {
    imbrex::task("receive").out(value).launch([&] {
      MPI_Recv(&value, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    imbrex::task("print").in(value).launch([&] { std::printf("%d got %d\n", rank, value); });
    imbrex::task("send").launch([&] { MPI_Send(&rank, 1, MPI_INT, right, 0, MPI_COMM_WORLD); });
  });
  MPI_Finalize();
  return value == left ? 0 : 1;
}
