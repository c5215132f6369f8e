// SPDX-License-Identifier: BSD-3-Clause
// An OpenMP program that knows nothing of imbrex: a task that declares an access for each block of
// a collective by an iterator, and tasks that read one block each. From the second round on the
// last rank comes only when on all others a task has read what came from rank 0: so where accesses
// end with their task, all wait for ever. (In the first one imbrex makes a communicator, for which
// all must have come.) IMBREX_PARTIAL=release is to make them end by blocks.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { length = 700, rounds = 5 };  // ints of a block: above the threshold

static int value_of(const int round, const int from, const int to, const int at) {
  return ((round * 8 + from) * 8 + to) * 1000 + at;
}

// The last rank waits until the others have read a block.
static void come_late(const int rank, const int ranks, const int round) {
  const int waits = rank == ranks - 1 && round != 0;
  for (int other = 0; waits && other < ranks - 1; ++other) {
    MPI_Recv(NULL, 0, MPI_INT, other, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

// Returns how many numbers arrived right. The sizes of blocks vary in every second round.
static int exchange(const int rank, const int ranks, const int round, int* out, int* in) {
  int right = 0;
  int counts[8], places[8];
  for (int r = 0; r < ranks; ++r) {
    counts[r] = length;
    places[r] = r * length;
  }
#pragma omp parallel
#pragma omp single
  {
#pragma omp task depend(iterator(r = 0 : ranks), in : out[r * length]) \
    depend(iterator(r = 0 : ranks), out : in[r * length])
    {
      come_late(rank, ranks, round);
      if (round % 2 == 0) {
        MPI_Alltoall(out, length, MPI_INT, in, length, MPI_INT, MPI_COMM_WORLD);
      } else {
        MPI_Alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
      }
    }
    for (int r = 0; r < ranks; ++r) {
#pragma omp task depend(in : in[r * length]) firstprivate(r) shared(right)
      {
        int mine = 0;
        for (int i = 0; i < length; ++i) {
          mine += in[r * length + i] == value_of(round, r, rank, i);
        }
#pragma omp atomic
        right += mine;
        if (r == 0 && rank != ranks - 1 && round != 0) {
          MPI_Send(NULL, 0, MPI_INT, ranks - 1, round, MPI_COMM_WORLD);
        }
      }
#pragma omp task depend(out : out[r * length]) firstprivate(r)
      for (int i = 0; i < length; ++i) out[r * length + i] = -1;  // it has left
    }
  }
  return right;
}

int main(int argc, char** argv) {
  int provided, rank, ranks;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (provided != MPI_THREAD_MULTIPLE || ranks > 8) MPI_Abort(MPI_COMM_WORLD, 2);
  int* const out = malloc(sizeof(int) * ranks * length);
  int* const in = malloc(sizeof(int) * ranks * length);
  for (int round = 0; round < rounds; ++round) {
    for (int r = 0; r < ranks; ++r) {
      for (int i = 0; i < length; ++i) {
        out[r * length + i] = value_of(round, rank, r, i);
        in[r * length + i] = -1;
      }
    }
    const int right = exchange(rank, ranks, round, out, in);
    if (right != ranks * length) {
      fprintf(stderr, "round %d, rank %d: %d numbers are right of %d\n", round, rank, right,
              ranks * length);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  free(out);
  free(in);
  MPI_Finalize();
  if (rank == 0) puts("done");
  return 0;
}
