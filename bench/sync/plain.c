/* SPDX-License-Identifier: BSD-3-Clause */
/* Barrier and reduction of the ranks of MPI alone: one for each core.

     mpirun -n N sync_plain <name to report> */
#include "epcc.h"

static double barrier(int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < count; ++i) {
    delay();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return MPI_Wtime() - begin;
}

static double reduction(int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < count; ++i) {
    int one = 1, all = 0;
    delay();
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - begin;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: sync_plain <name to report>\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  epcc_measure("strict", argv[1], 1, barrier);
  epcc_measure("reduction", argv[1], 1, reduction);
  MPI_Finalize();
  return 0;
}
