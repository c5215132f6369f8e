/* SPDX-License-Identifier: BSD-3-Clause */
/* Capra et al., listing 1.4, with OpenMP's own pragmas: the border of a field is computed when a
   progress function, which the runtime calls while it has nothing else to do, has seen the ghosts
   arrive. Built with -fopenmp, linked with imbrex, run on our libgomp.so.1. */
#include <imbrex/omp.h>
#include <mpi.h>
#include <stdio.h>

static MPI_Request requests[4];

static int look(void* unused) {
  (void)unused;
  int all = 0;
  MPI_Testall(4, requests, &all, MPI_STATUSES_IGNORE);
  if (all == 0) return 1; /* call me again */
  return imbrex_trigger("ghost_done") == IMBREX_SUCCESS ? 0 : -1;
}

int main(int argc, char** argv) {
  int provided, rank, ranks;
  double mine, sent, ghosts[2], core = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  mine = rank;
#pragma omp parallel
#pragma omp single
  for (int step = 0; step < 10; ++step) {
#pragma omp taskgroup
    { /* the name means another event in each */
      sent = mine;
      MPI_Irecv(&ghosts[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(&ghosts[1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
      MPI_Isend(&sent, 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[2]);
      MPI_Isend(&sent, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[3]);
      imbrex_progress_function(look);
#pragma omp task shared(core)
      core += 1;
#pragma omp task depend(in : *imbrex_named("ghost_done")) shared(mine, ghosts)
      mine = (ghosts[0] + ghosts[1]) / 2;
    }
  }
  double sum;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d: %g\n", rank, mine);
  MPI_Finalize();
  return core != 10 || sum != ranks * (ranks - 1) / 2.0;
}
