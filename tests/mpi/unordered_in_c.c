/* SPDX-License-Identifier: BSD-3-Clause */
/* In C: two tasks that send with one tag to one rank. They have no order, or the one that the
   argument names; checks.cmake says what is printed. */
#include <imbrex/imbrex.h>
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int code) {
  if (code == IMBREX_SUCCESS) return;
  fprintf(stderr, "%s\n", imbrex_message());
  exit(1);
}

static int send_sum(void* sum, void* result) {
  (void)result;
  return MPI_Send(sum, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
}

static int send_sum_too(void* sum, void* result) {
  return send_sum(sum, result);
}

static void send_both(const char* order) {
  int sums[2] = {1, 2};
  const imbrex_access shared = {IMBREX_INOUT, sums, 0};
  imbrex_task_spec left = IMBREX_TASK("left sum", send_sum);
  imbrex_task_spec right = IMBREX_TASK("right sum", send_sum_too);
  imbrex_finish_t finish;
  imbrex_future_t sent;
  left.argument = &sums[0];
  right.argument = &sums[1];
  left.accesses = right.accesses = &shared;
  left.access_count = right.access_count = strcmp(order, "access") == 0 ? 1 : 0;
  check(imbrex_finish_begin(&finish, IMBREX_HERE));
  check(imbrex_spawn(&left, &sent));
  if (strcmp(order, "future") == 0) check(imbrex_future_wait(sent));
  imbrex_future_free(&sent);
  check(imbrex_spawn(&right, NULL));
  check(imbrex_finish_end(&finish));
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) {
    send_both(argc == 2 ? argv[1] : "none");
  } else {
    int sums[2];
    MPI_Recv(&sums[0], 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&sums[1], 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
