/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that knows nothing of imbrex, for what preloading costs it: 8 bytes to and fro between
   two ranks, and the time that MPI_Init and MPI_Finalize take.

     mpirun -n 2 plain_mpi <name to report> single|multiple */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { slices = 60, trips = 2000 };

static double exchange(int rank) {
  char word[8] = "";
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int trip = 0; trip < trips; ++trip) {
    if (rank == 0) {
      MPI_Send(word, sizeof word, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(word, sizeof word, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(word, sizeof word, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(word, sizeof word, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - begin) * 1e9 / (2.0 * trips); /* one way */
}

static void print(const char* benchmark, const char* system, double ns, double least_ns) {
  printf("{\"benchmark\": \"%s\", \"system\": \"%s\", \"workers\": 1, \"ns\": %.1f, "
         "\"least_ns\": %.1f, \"operations\": %d}\n",
         benchmark, system, ns, least_ns, slices * trips);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: plain_mpi <name to report> single|multiple\n");
    return 2;
  }
  const char* const system = argv[1];
  const int multiple = strcmp(argv[2], "multiple") == 0;
  struct timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  int level = 0;
  if (multiple) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  } else {
    MPI_Init(&argc, &argv);
  }
  clock_gettime(CLOCK_MONOTONIC, &after);
  double life_ns = (after.tv_sec - before.tv_sec) * 1e9 + (after.tv_nsec - before.tv_nsec);

  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double sum = 0;
  double least = 1e18;
  for (int slice = 0; slice < slices; ++slice) {
    const double ns = exchange(rank);
    sum += ns;
    if (ns < least) least = ns;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  clock_gettime(CLOCK_MONOTONIC, &before);
  MPI_Finalize();
  clock_gettime(CLOCK_MONOTONIC, &after);
  life_ns += (after.tv_sec - before.tv_sec) * 1e9 + (after.tv_nsec - before.tv_nsec);
  if (rank == 0) {
    const char* const benchmark = multiple ? "preload_multiple" : "preload_single";
    print(benchmark, system, sum / slices, least);
    print(multiple ? "start_multiple" : "start_single", system, life_ns, life_ns);
  }
  return 0;
}
