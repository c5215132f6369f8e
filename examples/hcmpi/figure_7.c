/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 7 of Chatterjee et al., IPDPS 2013: one barrier over all tasks of all ranks. */
#include <stdio.h>

#include "imbrex/compat/hcmpi.h"

enum { n = 8 };

static int here, everywhere;

static void work(void* argument) {
  int i = *(const int*)argument;
  __atomic_fetch_add(&here, i, __ATOMIC_RELAXED);
  hc_next();
  /* Post-barrier work: the tasks of all ranks have counted, so that one may send the sum. */
  if (i == 0) {
    HCMPI_Allreduce(&here, &everywhere, 1, HCMPI_INT, HCMPI_SUM, HCMPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  int size;
  HCMPI_Init(&argc, &argv);
  HCMPI_Comm_size(HCMPI_COMM_WORLD, &size);

  hc_finish_begin();
  phaser* ph = HCMPI_PHASER_CREATE(SIGNAL_WAIT_MODE);
  hc_phased on_ph = {.on = ph};
  hc_clauses phased = {.phased = &on_ph, .phased_count = 1};
  for (int i = 0; i < n; ++i) hc_async(work, &i, sizeof i, &phased);
  hc_finish_end();
  PHASER_FREE(&ph);

  printf("%d here, %d everywhere\n", here, everywhere);
  HCMPI_Finalize();
  return everywhere == size * n * (n - 1) / 2 ? 0 : 1;
}
