/* SPDX-License-Identifier: BSD-3-Clause
   suspend member|task suspends|blocks [test|critical|lock]: whether what waits in MPI, a member of
   a team or an explicit task, lets others run on its thread; with a third word what loops on
   MPI_Test, perhaps in a critical region or with a lock. One thread and one rank, which sends to
   itself: where the wait does not suspend, the send behind it is never made; an alarm says so. */
#include <mpi.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* expected;
static int sent;

static void give_up(int number) {
  static const char text[] = "blocked\n";
  (void)number;
  if (write(1, text, sizeof text - 1) < 0 || strcmp(expected, "blocks") != 0) _exit(1);
  _exit(0);
}

static void test_until(MPI_Request* request) {
  for (int done = 0; !done;) MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

/* A lock that was held, and is free again, is no obstacle. */
static void ask(int* value, const char* where) {
  MPI_Request request;
  omp_lock_t lock;
  omp_init_lock(&lock);
  omp_set_lock(&lock);
  omp_unset_lock(&lock);
#pragma omp critical
  MPI_Irecv(value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
  if (strcmp(where, "critical") == 0) {
#pragma omp critical
    test_until(&request);
  } else {
    if (strcmp(where, "lock") == 0) omp_set_lock(&lock);
    test_until(&request);
    if (strcmp(where, "lock") == 0) omp_unset_lock(&lock);
  }
  omp_destroy_lock(&lock);
}

static void receive_before_send(const char* where) {
  int value = 0;
#pragma omp task shared(sent)
  {
    sent = 1;
    MPI_Send(&sent, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
  }
  if (where != NULL) {
    ask(&value, where);
  } else {
    MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (value != 1) exit(1);
}

int main(int argc, char** argv) {
  int provided;
  if (argc < 3) return 2;
  const char* const where = argc > 3 ? argv[3] : NULL;
  const int in_task = strcmp(argv[1], "task") == 0;
  expected = argv[2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  signal(SIGALRM, give_up);
  alarm(strcmp(expected, "blocks") == 0 ? 3 : 50); /* a slow machine is no wait */
#pragma omp parallel num_threads(1)
  {
    if (in_task) {
#pragma omp task
      receive_before_send(where);
#pragma omp taskwait
    } else {
      receive_before_send(where);
    }
  }
  MPI_Finalize();
  printf("suspended\n");
  return strcmp(expected, "suspends") != 0;
}
