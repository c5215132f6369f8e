// SPDX-License-Identifier: BSD-3-Clause
// Counts how often the names of tasks are looked up in the debug information of a program of OpenMP
// and MPI under IMBREX_CHECK: never in a right program (`right`), but for a finding (`wrong`).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int lookups;

// The libraries of imbrex call this function, since the program shows it to them.
int open(const char* path, int flags, ...) {
  int (*next)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  va_list list;
  va_start(list, flags);
  const int mode = flags & O_CREAT ? va_arg(list, int) : 0;
  va_end(list);
  if (strcmp(path, "/proc/self/exe") == 0) ++lookups;
  return next(path, flags, mode);
}

int main(int argc, char** argv) {
  int level, rank, mine[4] = {1, 2, 3, 4}, got[4] = {0};
  const int apart = argc > 1 && strcmp(argv[1], "right") == 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#pragma omp parallel
#pragma omp single
  {
#pragma omp task
    MPI_Recv(&got[2], 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#pragma omp task
    {
      MPI_Request all[2], again;
      MPI_Irecv(&got[0], 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &all[0]);
      MPI_Irecv(&got[apart], 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &all[1]);
      for (int i = 0; i < 3; ++i) MPI_Send(&mine[i], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD);
      MPI_Send_init(&mine[3], 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, &again);
      MPI_Start(&again);
      MPI_Wait(&again, MPI_STATUS_IGNORE);
      MPI_Request_free(&again);
      MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    }
#pragma omp task
    MPI_Recv(&got[3], 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  printf("lookups: %d\n", atomic_load(&lookups));
  MPI_Finalize();
  return 0;
}
