/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 8 of Chatterjee et al., IPDPS 2013: a sum over all tasks of all ranks, which every task
   can read in the next phase, and main after the finish. */
#include <stdio.h>

#include "imbrex/compat/hcmpi.h"

enum { n = 8 };

typedef struct {
  phaser* ph;
  int my_val;
} Mine;

static int size, wrong;

static void add(void* argument) {
  Mine* mine = argument;
  accum_next(&mine->my_val);
  int sum = *(int*)accum_get(mine->ph);
  if (sum != size * n * (n + 1) / 2) wrong = 1;
}

int main(int argc, char** argv) {
  HCMPI_Init(&argc, &argv);
  HCMPI_Comm_size(HCMPI_COMM_WORLD, &size);

  hc_finish_begin();
  phaser* ph = HCMPI_ACCUM_CREATE(HCMPI_SUM, HCMPI_INT);
  for (int i = 0; i < n; ++i) {
    Mine mine = {ph, i + 1};
    hc_clauses phased = {.phased_all = 1};
    hc_async(add, &mine, sizeof mine, &phased);
  }
  hc_finish_end();
  int* result = (int*)accum_get(ph);
  printf("the sum is %d\n", *result);
  if (*result != size * n * (n + 1) / 2) wrong = 1;

  PHASER_FREE(&ph);
  HCMPI_Finalize();
  return wrong;
}
