/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive and a send in two tasks, through HCMPI's interface: ends with 0, and prints nothing. */
#include <imbrex/compat/hcmpi.h>

static int value;
static void send(void* argument) {
  HCMPI_Send(argument, 1, HCMPI_INT, 0, 0, HCMPI_COMM_SELF);
}
static void receive(void* argument) {
  (void)argument;
  HCMPI_Recv(&value, 1, HCMPI_INT, 0, 0, HCMPI_COMM_SELF, HCMPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  HCMPI_Init(&argc, &argv);
  hc_finish_begin();
  hc_async(receive, NULL, 0, NULL);
  hc_async(send, &(int){42}, sizeof(int), NULL);
  hc_finish_end();
  HCMPI_Finalize();
  return value == 42 ? 0 : 1;
}
