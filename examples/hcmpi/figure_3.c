/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 3 of Chatterjee et al., IPDPS 2013: a finish waits for the communication that began in it,
   so that a non-blocking receive becomes a blocking one. */
#include <stdio.h>

#include "imbrex/compat/hcmpi.h"

enum { COUNT = 1000 };

static int worked;
static void work(void* argument) { worked = *(const int*)argument; }

int main(int argc, char** argv) {
  int rank, size;
  HCMPI_Init(&argc, &argv);
  HCMPI_Comm_rank(HCMPI_COMM_WORLD, &rank);
  HCMPI_Comm_size(HCMPI_COMM_WORLD, &size);
  int send_buf[COUNT], recv_buf[COUNT];
  for (int i = 0; i < COUNT; i++) send_buf[i] = rank * COUNT + i;
  int from = (rank + size - 1) % size;

  hc_finish_begin();
  HCMPI_Irecv(recv_buf, COUNT, HCMPI_INT, from, 0, HCMPI_COMM_WORLD, NULL);
  HCMPI_Isend(send_buf, COUNT, HCMPI_INT, (rank + 1) % size, 0, HCMPI_COMM_WORLD, NULL);
  int amount = 7;
  hc_async(work, &amount, sizeof amount, NULL); /* do asynchronous work */
  hc_finish_end();                              /* Irecv must be complete after finish */

  int wrong = worked != 7;
  for (int i = 0; i < COUNT; i++) wrong += recv_buf[i] != from * COUNT + i;
  printf("rank %d: %d values are wrong\n", rank, wrong);
  HCMPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
