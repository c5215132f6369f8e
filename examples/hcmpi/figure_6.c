/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 6 of Chatterjee et al., IPDPS 2013: a barrier between ranks suspends the task that calls
   it; A() may run meanwhile, B() ends before, C() begins after. */
#include <stdio.h>

#include "imbrex/compat/hcmpi.h"

static int rank, size, b_done, c_saw, a_done;

static void A(void* argument) {
  (void)argument;
  a_done = 1;
}
/* Each rank tells rank 0 that it has been here. */
static void B(void) {
  b_done = 1;
  if (rank != 0) HCMPI_Send(&b_done, 1, HCMPI_INT, 0, 0, HCMPI_COMM_WORLD);
}
/* After the barrier all of them are in flight to rank 0. */
static void C(void) {
  c_saw = b_done;
  for (int from = 1; rank == 0 && from < size; from++) {
    int one = 0;
    HCMPI_Recv(&one, 1, HCMPI_INT, from, 0, HCMPI_COMM_WORLD, HCMPI_STATUS_IGNORE);
    c_saw += one;
  }
}

int main(int argc, char** argv) {
  HCMPI_Init(&argc, &argv);
  HCMPI_Comm_rank(HCMPI_COMM_WORLD, &rank);
  HCMPI_Comm_size(HCMPI_COMM_WORLD, &size);

  hc_finish_begin();
  hc_async(A, NULL, 0, NULL);
  B();
  HCMPI_Barrier(HCMPI_COMM_WORLD);
  C();
  hc_finish_end();

  printf("rank %d: C() saw %d B()\n", rank, c_saw);
  HCMPI_Finalize();
  return a_done == 1 && c_saw == (rank == 0 ? size : 1) ? 0 : 1;
}
