/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of TAMPI's: the task that receives ends at once, and what depends on it runs when the
   message is there. Each rank adds what its neighbour sent. */
#include <TAMPI.h>
#include <imbrex/imbrex.h>
#include <stdio.h>

static int rank, ranks;
static int in, out, sum;
static MPI_Status status; /* written when the message comes: the task has ended by then */

static int receive(void* argument, void* result) {
  (void)argument, (void)result;
  MPI_Request request;
  MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request);
  return TAMPI_Iwait(&request, &status);
}

static int send(void* argument, void* result) {
  (void)argument, (void)result;
  out = rank;
  return TAMPI_Isend(&out, 1, MPI_INT, (rank + 1) % ranks, 1, MPI_COMM_WORLD);
}

static int add(void* argument, void* result) {
  (void)argument, (void)result;
  sum = in + status.MPI_SOURCE;
  return 0;
}

static int spawn(const char* name, int (*body)(void*, void*), int kind, void* object) {
  const imbrex_access access = {kind, object, 0};
  imbrex_task_spec spec = IMBREX_TASK(name, body);
  spec.access_count = 1;
  spec.accesses = &access;
  return imbrex_spawn(&spec, NULL);
}

int main(int argc, char** argv) {
  int provided;
  imbrex_finish_t finish;
  MPI_Init_thread(&argc, &argv, MPI_TASK_MULTIPLE, &provided);
  if (provided != MPI_TASK_MULTIPLE) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  imbrex_finish_begin(&finish, IMBREX_HERE);
  spawn("receive", receive, IMBREX_OUT, &in);
  spawn("add", add, IMBREX_IN, &in);
  spawn("send", send, IMBREX_OUT, &out);
  const int code = imbrex_finish_end(&finish);
  if (code != IMBREX_SUCCESS) fprintf(stderr, "%s\n", imbrex_message());
  printf("rank %d: %d\n", rank, sum);
  MPI_Finalize();
  return code != IMBREX_SUCCESS || sum != 2 * ((rank + ranks - 1) % ranks);
}
