// SPDX-License-Identifier: BSD-3-Clause
// Two tasks of OpenMP that send with one tag to one rank, under IMBREX_CHECK: in no order (`none`),
// or in the order that the argument names.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void send_sum(int sum) { MPI_Send(&sum, 1, MPI_INT, 0, 5, MPI_COMM_WORLD); }

static int first;  // what tasks depend on

static void send_both(const char* order) {
  const int waits = strcmp(order, "taskwait") == 0;
#pragma omp parallel
#pragma omp single
  if (strcmp(order, "depend") == 0) {
#pragma omp task depend(out : first)
    send_sum(1);
#pragma omp task depend(in : first)
    send_sum(2);
  } else {
#pragma omp task
    send_sum(1);
    if (waits) {
#pragma omp taskwait
    }
#pragma omp task
    send_sum(2);
  }
}

// Constructs that order the threads of a team order the tasks, too.
static void send_in_turn(void) {
#pragma omp parallel
  {
#pragma omp single
    {
#pragma omp task
      send_sum(1);
    }
#pragma omp single
    {
#pragma omp task
      send_sum(2);
    }
#pragma omp for ordered
    for (int i = 0; i < 2; ++i) {
#pragma omp ordered
      send_sum(i);
    }
  }
}

int main(int argc, char** argv) {
  int level, rank;
  const int in_turn = argc > 1 && strcmp(argv[1], "barrier") == 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    for (int i = 0; i < (in_turn ? 4 : 2); ++i) {
      int sum;
      MPI_Recv(&sum, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  } else if (in_turn) {
    send_in_turn();
  } else {
    send_both(argc > 1 ? argv[1] : "none");
  }
  MPI_Finalize();
  printf("done\n");
  return 0;
}
