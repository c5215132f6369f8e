// SPDX-License-Identifier: BSD-3-Clause
// An OpenMP program that knows nothing of imbrex. Each rank creates more tasks that receive than it
// has threads, and only then those that send: under libgomp all threads are blocked in MPI_Recv
// before a send is made, for ever. A lock is held across some of the receives.
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { messages = 40, crowd = 400 };  // the latter: more than a team keeps queued

// Without dependences, and so many that a runtime may be tempted to run them at once.
static int exchange_in_crowd(const int left, const int right) {
  int crowded = 0;
#pragma omp parallel
#pragma omp single
  {
    for (int i = 0; i < crowd; ++i) {
#pragma omp task firstprivate(i) shared(crowded)
      {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, left, 1000 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#pragma omp atomic
        crowded += value == i;
      }
    }
    for (int i = 0; i < crowd; ++i) {
#pragma omp task firstprivate(i)
      MPI_Send(&i, 1, MPI_INT, right, 1000 + i, MPI_COMM_WORLD);
    }
  }
  return crowded;
}

int main(int argc, char** argv) {
  int provided, rank, ranks;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (provided != MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 2);
  const int left = (rank + ranks - 1) % ranks;
  const int right = (rank + 1) % ranks;
  long sum = 0;
  int locked = 0;
  int received[messages];
#pragma omp parallel
#pragma omp single
  {
    for (int i = 0; i < messages; ++i) {
#pragma omp task depend(out : received[i]) firstprivate(i) shared(received, locked)
      {
        const int number = omp_get_thread_num();
        if (i == 3) {
#pragma omp critical
          {
            MPI_Recv(&received[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            ++locked;
          }
        } else {
          MPI_Recv(&received[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#pragma omp critical
          ++locked;
        }
        if (number != omp_get_thread_num()) MPI_Abort(MPI_COMM_WORLD, 3);
      }
    }
    for (int i = 0; i < messages; ++i) {
#pragma omp task depend(in : received[i]) firstprivate(i) shared(received, sum)
      {
#pragma omp atomic
        sum += received[i];
      }
    }
    for (int i = 0; i < messages; ++i) {
#pragma omp task firstprivate(i)
      {
        const int value = 1000 * rank + i;
        MPI_Send(&value, 1, MPI_INT, right, i, MPI_COMM_WORLD);
      }
    }
  }
  const long expected = 1000L * left * messages + messages * (messages - 1) / 2;
  if (sum != expected || locked != messages) {
    fprintf(stderr, "rank %d: sum %ld, not %ld; locked %d\n", rank, sum, expected, locked);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (exchange_in_crowd(left, right) != crowd) MPI_Abort(MPI_COMM_WORLD, 1);
  // Members themselves wait in MPI, each for what another sends.
  int crossed = 0;
#pragma omp parallel num_threads(2) reduction(+ : crossed)
  {
    const int me = omp_get_thread_num();
    int value = me;
    MPI_Sendrecv_replace(&value, 1, MPI_INT, right, 100 + me, left, 100 + me, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    crossed += value == me;
  }
  MPI_Finalize();
  if (crossed != 2) return 1;
  if (rank == 0) printf("done\n");
  return 0;
}
