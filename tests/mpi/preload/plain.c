/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that knows nothing of imbrex: plain MPI, one thread. Its own output and exit status say
   whether it noticed anything. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "plain: wrong: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int level = -1;
  int rank = 0;
  int ranks = 0;
  MPI_Query_thread(&level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;

  for (int round = 0; round < 100; ++round) {
    int value = -1;
    MPI_Status status;
    if (rank == 0) MPI_Send(&round, 1, MPI_INT, next, round, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, previous, round, MPI_COMM_WORLD, &status);
    if (rank != 0) MPI_Send(&value, 1, MPI_INT, next, round, MPI_COMM_WORLD);
    check(value == round && status.MPI_SOURCE == previous && status.MPI_TAG == round, "a token");

    int out[2] = {rank, round};
    int in[2] = {-1, -1};
    MPI_Request requests[2];
    MPI_Irecv(in, 2, MPI_INT, MPI_ANY_SOURCE, 1000, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 2, MPI_INT, previous, 1000, MPI_COMM_WORLD, &requests[1]);
    MPI_Status statuses[2];
    MPI_Waitall(2, requests, statuses);
    check(statuses[0].MPI_SOURCE == next && statuses[0].MPI_TAG == 1000, "a status of several");
    check(in[0] == next && in[1] == round, "a message from the next rank");

    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == ranks * (ranks - 1) / 2, "a sum over ranks");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const char* name = "between";
  if (level == MPI_THREAD_SINGLE) name = "single";
  if (level == MPI_THREAD_MULTIPLE) name = "multiple";
  if (rank == 0) printf("plain: %d ranks, thread level %s\n", ranks, name);
  MPI_Finalize();
  return 0;
}
