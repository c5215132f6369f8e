/* SPDX-License-Identifier: BSD-3-Clause */
/* A program as they are written for TAMPI, in C: rounds of a halo exchange whose tasks bind their
   requests, and a sum over all ranks. All of it twice: with calls of MPI and TAMPI_Iwait, and with
   TAMPI's own. Prints what is wrong, and returns 1 then. */
#include <TAMPI.h>
#include <imbrex/imbrex.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { cells = 1000, rounds = 20 };

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s: %s\n", __FILE__, __LINE__, #condition, \
              imbrex_message());                                                \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

static int rank, ranks;
static double field[cells + 2]; /* with a cell of each neighbour's at the ends */
static double total;
static double partial;
static MPI_Status statuses[2];
static MPI_Status status;

static int left(void) { return (rank + ranks - 1) % ranks; }
static int right(void) { return (rank + 1) % ranks; }

static int exchange_by_iwaitall(void* argument, void* result) {
  MPI_Request requests[4];
  (void)argument;
  (void)result;
  MPI_Irecv(&field[0], 1, MPI_DOUBLE, left(), 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&field[cells + 1], 1, MPI_DOUBLE, right(), 2, MPI_COMM_WORLD, &requests[1]);
  CHECK(TAMPI_Iwaitall(2, requests, statuses) == MPI_SUCCESS);
  MPI_Isend(&field[cells], 1, MPI_DOUBLE, right(), 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(&field[1], 1, MPI_DOUBLE, left(), 2, MPI_COMM_WORLD, &requests[3]);
  CHECK(TAMPI_Iwaitall(2, &requests[2], MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  return 0;
}

static int exchange_by_wrappers(void* argument, void* result) {
  MPI_Request requests[4];
  (void)argument;
  (void)result;
  CHECK(TAMPI_Irecv(&field[0], 1, MPI_DOUBLE, left(), 1, MPI_COMM_WORLD, &requests[0],
                    &statuses[0]) == MPI_SUCCESS);
  CHECK(TAMPI_Irecv(&field[cells + 1], 1, MPI_DOUBLE, right(), 2, MPI_COMM_WORLD, &requests[1],
                    &statuses[1]) == MPI_SUCCESS);
  CHECK(TAMPI_Isend(&field[cells], 1, MPI_DOUBLE, right(), 1, MPI_COMM_WORLD, &requests[2]) ==
        MPI_SUCCESS);
  CHECK(TAMPI_Isend(&field[1], 1, MPI_DOUBLE, left(), 2, MPI_COMM_WORLD, &requests[3]) ==
        MPI_SUCCESS);
  CHECK(TAMPI_Waitall(4, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  return 0;
}

/* Every cell is the same number all the time if each round sees the cells of its neighbours. */
static int step(void* argument, void* result) {
  static double next[cells + 2];
  int i;
  (void)argument;
  (void)result;
  CHECK(statuses[0].MPI_TAG == 1 && statuses[0].MPI_SOURCE == left());
  CHECK(statuses[1].MPI_TAG == 2 && statuses[1].MPI_SOURCE == right());
  for (i = 1; i <= cells; ++i) next[i] = (field[i - 1] + field[i + 1]) / 2 + 1;
  partial = 0;
  for (i = 1; i <= cells; ++i) partial += field[i] = next[i];
  field[0] = field[cells + 1] = -1;
  return 0;
}

static int add_up(void* argument, void* result) {
  MPI_Request request;
  (void)argument;
  (void)result;
  CHECK(TAMPI_Iallreduce(&partial, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request) ==
        MPI_SUCCESS);
  CHECK(TAMPI_Iwait(&request, &status) == MPI_SUCCESS); /* null by now: left out */
  return 0;
}

static int compare(void* argument, void* result) {
  (void)result;
  CHECK(total == *(const double*)argument * cells * ranks);
  return 0;
}

static void spawn(const char* name, int (*body)(void*, void*), double argument, int kind_of_field,
                  int kind_of_total) {
  imbrex_access accesses[2] = {{0, field, 0}, {0, &total, 0}};
  imbrex_task_spec spec = IMBREX_TASK(name, body);
  accesses[0].kind = kind_of_field;
  accesses[1].kind = kind_of_total;
  spec.argument = &argument;
  spec.argument_bytes = sizeof argument;
  spec.access_count = 2;
  spec.accesses = accesses;
  CHECK(imbrex_spawn(&spec, NULL) == IMBREX_SUCCESS);
}

static void run(int (*exchange)(void*, void*)) {
  imbrex_finish_t finish;
  int i;
  for (i = 0; i < cells + 2; ++i) field[i] = 0;
  CHECK(imbrex_finish_begin(&finish, IMBREX_HERE) == IMBREX_SUCCESS);
  for (i = 1; i <= rounds; ++i) {
    spawn("exchange", exchange, 0, IMBREX_INOUT, IMBREX_IN);
    spawn("step", step, 0, IMBREX_INOUT, IMBREX_INOUT);
    spawn("add up", add_up, 0, IMBREX_IN, IMBREX_INOUT);
    spawn("compare", compare, i, IMBREX_IN, IMBREX_INOUT);
  }
  CHECK(imbrex_finish_end(&finish) == IMBREX_SUCCESS);
  CHECK(field[1] == rounds && total == (double)rounds * cells * ranks);
}

static int receive_too_little(void* argument, void* result) {
  static int one;
  MPI_Request request;
  (void)argument;
  (void)result;
  TAMPI_Irecv(&one, 1, MPI_INT, left(), 3, MPI_COMM_WORLD, &request, MPI_STATUS_IGNORE);
  return 0;
}

static void fail_in_a_task(void) {
  const int two[2] = {1, 2};
  imbrex_finish_t finish;
  imbrex_task_spec spec = IMBREX_TASK("receive too little", receive_too_little);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK(imbrex_finish_begin(&finish, IMBREX_HERE) == IMBREX_SUCCESS);
  CHECK(imbrex_spawn(&spec, NULL) == IMBREX_SUCCESS);
  MPI_Send(two, 2, MPI_INT, right(), 3, MPI_COMM_WORLD);
  CHECK(imbrex_finish_end(&finish) != IMBREX_SUCCESS);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  int provided, flag;
  CHECK(MPI_Init_thread(&argc, &argv, MPI_TASK_MULTIPLE, &provided) == MPI_SUCCESS);
  if (provided != MPI_TASK_MULTIPLE) {
    fprintf(stderr, "MPI_TASK_MULTIPLE is not provided\n");
    return 1;
  }
  CHECK(TAMPI_VERSION_MAJOR >= 1 && TAMPI_VERSION_MINOR >= 0);
  CHECK(TAMPI_Property_get(TAMPI_PROPERTY_BLOCKING_MODE, &flag) == MPI_SUCCESS && flag == 1);
  CHECK(TAMPI_Nonblocking_enabled(&flag) == MPI_SUCCESS && flag == 1);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  run(exchange_by_iwaitall);
  run(exchange_by_wrappers);
  if (ranks > 1) fail_in_a_task();
  MPI_Finalize();
  if (rank == 0) printf("all is well on %d ranks\n", ranks);
  return 0;
}
