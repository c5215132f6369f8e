/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 2 with the blocks of clang (-fblocks), which come near to Habanero-C's own syntax: a block
   copies the variables that it uses, as IN does. */
#define HCMPI_SHORT_NAMES
#include <stdio.h>

#include "imbrex/compat/hcmpi.h"

enum { PART_SIZE = 16, SIZE = 16 * 1000 };

static void vectorAdd(const float* A, const float* B, float* C, int size) {
  int parts = size / PART_SIZE;
  finish {
    for (int i = 0; i < parts; i++) {
      hc_async_block(NULL, ^{
        int start = i * PART_SIZE;
        for (int j = start; j < start + PART_SIZE; j++) C[j] = A[j] + B[j];
      });
    }
  }
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
