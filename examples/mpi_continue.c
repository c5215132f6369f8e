/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI continuations in C: a token goes back and forth, and no thread waits for a request. */
#include <stdio.h>

#include "imbrex/continue.h"

enum { rounds = 1000 };

static int token;
static int peer;
static int left = rounds;

static void received(int code, int count, const MPI_Status* statuses, void* argument);

static void receive(void) {
  MPI_Request request;
  MPI_Irecv(&token, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, &request);
  imbrex_continue(&request, received, NULL);
}

static void sent(int code, int count, const MPI_Status* statuses, void* argument) {
  (void)code, (void)count, (void)statuses, (void)argument;
  --left;
  if (left > 0) receive();
}

static void send(void) {
  MPI_Request request;
  MPI_Isend(&token, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, &request);
  imbrex_continue(&request, sent, NULL);
}

static void received(int code, int count, const MPI_Status* statuses, void* argument) {
  (void)code, (void)count, (void)statuses, (void)argument;
  ++token;
  send();
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = 1 - rank;
  if (rank == 0) send();
  if (rank == 1) receive();
  while (left > 0) imbrex_progress();
  if (rank == 0) MPI_Recv(&token, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  printf("rank %d: the token is %d\n", rank, token);
  MPI_Finalize();
  return token == 2 * rounds - 1 ? 0 : 1;
}
