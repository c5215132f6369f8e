/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 5 of Chatterjee et al., IPDPS 2013: HCMPI_Wait gives a status, which tells how much has
   come. Only the waiting task is suspended. */
#include <stdio.h>

#include "imbrex/compat/hcmpi.h"

enum { MOST = 100 };

int main(int argc, char** argv) {
  int rank, size;
  HCMPI_Init(&argc, &argv);
  HCMPI_Comm_rank(HCMPI_COMM_WORLD, &rank);
  HCMPI_Comm_size(HCMPI_COMM_WORLD, &size);
  int send_buf[MOST] = {0}, recv_buf[MOST];
  for (int i = 0; i <= rank; i++) send_buf[i] = rank;
  int from = (rank + size - 1) % size;

  HCMPI_Request* r;
  HCMPI_Irecv(recv_buf, MOST, HCMPI_INT, from, 0, HCMPI_COMM_WORLD, &r);
  /* do asynchronous work: this rank sends rank + 1 numbers */
  HCMPI_Send(send_buf, rank + 1, HCMPI_INT, (rank + 1) % size, 0, HCMPI_COMM_WORLD);
  HCMPI_Status* s;
  HCMPI_Wait(r, &s);
  int count;
  HCMPI_Get_count(s, HCMPI_INT, &count);
  int wrong = count != from + 1 || s->MPI_SOURCE != from;
  if (count > 0) wrong += recv_buf[count - 1] != from;
  HCMPI_STATUS_FREE(&s);
  HCMPI_REQUEST_FREE(&r);

  printf("rank %d: %d numbers from rank %d\n", rank, count, from);
  HCMPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
