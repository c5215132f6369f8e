/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 4 of Chatterjee et al., IPDPS 2013: a request is a data-driven future: tasks await it. */
#include <stdio.h>

#include "imbrex/compat/hcmpi.h"

enum { COUNT = 1000 };

static int sum;
static void read_buffer(void* argument) {
  const int* recv_buf = *(int**)argument;
  for (int i = 0; i < COUNT; i++) sum += recv_buf[i];
}

int main(int argc, char** argv) {
  int rank, size;
  HCMPI_Init(&argc, &argv);
  HCMPI_Comm_rank(HCMPI_COMM_WORLD, &rank);
  HCMPI_Comm_size(HCMPI_COMM_WORLD, &size);
  int send_buf[COUNT], buffer[COUNT], *recv_buf = buffer;
  for (int i = 0; i < COUNT; i++) send_buf[i] = rank + 1;

  hc_finish_begin();
  HCMPI_Request* r;
  HCMPI_Irecv(recv_buf, COUNT, HCMPI_INT, HCMPI_ANY_SOURCE, 0, HCMPI_COMM_WORLD, &r);
  hc_clauses await_r = {.await = &r, .await_count = 1};
  hc_async(read_buffer, &recv_buf, sizeof recv_buf, &await_r); /* AWAIT(r) IN(recv_buf) */
  HCMPI_Send(send_buf, COUNT, HCMPI_INT, (rank + 1) % size, 0, HCMPI_COMM_WORLD);
  HCMPI_REQUEST_FREE(&r); /* the task keeps what it awaits */
  hc_finish_end();

  int from = (rank + size - 1) % size;
  printf("rank %d: the sum is %d\n", rank, sum);
  HCMPI_Finalize();
  return sum == COUNT * (from + 1) ? 0 : 1;
}
