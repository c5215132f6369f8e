/* SPDX-License-Identifier: BSD-3-Clause
   suspend member|task suspends|blocks: whether what waits in MPI, a member of a team or an explicit
   task, lets others run on its thread. One thread and one rank, which sends to itself: where the
   wait does not suspend, the send behind it is never made, and an alarm says so. */
#include <mpi.h>
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

static void receive_before_send(void) {
  int value = 0;
#pragma omp task shared(sent)
  {
    sent = 1;
    MPI_Send(&sent, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
  }
  MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (value != 1) exit(1);
}

int main(int argc, char** argv) {
  int provided;
  if (argc != 3) return 2;
  const int in_task = strcmp(argv[1], "task") == 0;
  expected = argv[2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  signal(SIGALRM, give_up);
  alarm(strcmp(expected, "blocks") == 0 ? 3 : 50); /* a slow machine is no wait */
#pragma omp parallel num_threads(1)
  {
    if (in_task) {
#pragma omp task
      receive_before_send();
#pragma omp taskwait
    } else {
      receive_before_send();
    }
  }
  MPI_Finalize();
  printf("suspended\n");
  return strcmp(expected, "suspends") != 0;
}
