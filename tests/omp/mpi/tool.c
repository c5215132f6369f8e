// SPDX-License-Identifier: BSD-3-Clause
// A program of OpenMP and MPI for the tests with a tool of MPI: two ranks exchange messages in
// tasks.
#include <mpi.h>
#include <stdio.h>

enum { rounds = 25, messages = 4 };

int main(int argc, char** argv) {
  int level, rank, got[messages], numbers[messages], wrong = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#pragma omp parallel
#pragma omp single
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < messages; ++i) {
#pragma omp task firstprivate(i)
      MPI_Recv(&got[i], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < messages; ++i) {
      numbers[i] = round * messages + i;
#pragma omp task firstprivate(i)
      MPI_Send(&numbers[i], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD);
    }
#pragma omp taskwait
    for (int i = 0; i < messages; ++i) wrong += got[i] != numbers[i];
  }
  MPI_Finalize();
  if (wrong == 0) puts("done");
  return wrong != 0;
}
