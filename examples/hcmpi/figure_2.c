/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 2 of Chatterjee et al., IPDPS 2013: a vector is added in parts, a task for each. */
#include <stdio.h>

#include "imbrex/compat/hcmpi.h"

enum { PART_SIZE = 16, SIZE = 16 * 1000 };

typedef struct {
  const float *A, *B;
  float* C;
  int i;
} Part;

static void add_part(void* argument) {
  const Part* part = argument; /* the task's own copy, as IN(i) */
  int start = part->i * PART_SIZE;
  int end = start + PART_SIZE;
  for (int j = start; j < end; j++) part->C[j] = part->A[j] + part->B[j];
}

/* vector addition: A + B = C, size is modular of 16 */
static void vectorAdd(const float* A, const float* B, float* C, int size) {
  int parts = size / PART_SIZE;
  hc_finish_begin();
  for (int i = 0; i < parts; i++) {
    Part part = {A, B, C, i};
    hc_async(add_part, &part, sizeof part, NULL);
  }
  hc_finish_end();
}

static float A[SIZE], B[SIZE], C[SIZE];

int main(void) {
  for (int i = 0; i < SIZE; i++) {
    A[i] = (float)i;
    B[i] = (float)(2 * i);
  }
  vectorAdd(A, B, C, SIZE);
  int wrong = 0;
  for (int i = 0; i < SIZE; i++) wrong += C[i] != (float)(3 * i);
  printf("%d of %d sums are wrong\n", wrong, SIZE);
  return wrong == 0 ? 0 : 1;
}
