/* SPDX-License-Identifier: BSD-3-Clause */
/* The same of MPI and OpenMP together, as Chatterjee et al. measure it (IPDPS 2013, Table II): one
   thread of each rank calls MPI between two barriers of the threads; a fuzzy barrier leaves out the
   first of these.

     mpirun -n N sync_openmp <name to report> */
#include <omp.h>

#include "epcc.h"

static double strict(int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
#pragma omp parallel
  for (int i = 0; i < count; ++i) {
    delay();
#pragma omp barrier
#pragma omp master
    MPI_Barrier(MPI_COMM_WORLD);
#pragma omp barrier
  }
  return MPI_Wtime() - begin;
}

static double fuzzy(int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
#pragma omp parallel
  for (int i = 0; i < count; ++i) {
    delay();
#pragma omp master
    MPI_Barrier(MPI_COMM_WORLD);
#pragma omp barrier
  }
  return MPI_Wtime() - begin;
}

static double reduction(int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  int sum = 0, all = 0;
#pragma omp parallel
  for (int i = 0; i < count; ++i) {
    delay();
#pragma omp for reduction(+ : sum)
    for (int thread = 0; thread < omp_get_num_threads(); ++thread) sum += 1;
#pragma omp master
    MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#pragma omp barrier
  }
  return MPI_Wtime() - begin;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: sync_openmp <name to report>\n");
    return 2;
  }
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  const int threads = omp_get_max_threads();
  epcc_measure("strict", argv[1], threads, strict);
  epcc_measure("fuzzy", argv[1], threads, fuzzy);
  epcc_measure("reduction", argv[1], threads, reduction);
  MPI_Finalize();
  return 0;
}
