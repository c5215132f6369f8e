/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks in two functions: a trace calls them by these, and by the lines of their constructs. */
#include <stdio.h>

static int cells[64];

static void relax(void) {
  for (int i = 0; i < 64; ++i) {
#pragma omp task depend(inout : cells[i % 8])
    ++cells[i % 8];
  }
}

static void show(void) {
#pragma omp task
  printf("%d\n", cells[0]);
}

int main(void) {
#pragma omp parallel
#pragma omp single
  {
    relax();
#pragma omp taskwait
    show();
#pragma omp taskwait
    for (int i = 0; i < 3; ++i) {
#pragma omp task depend(inout : cells[0])
      ++cells[0];
    }
#pragma omp task depend(inout : cells[0])
    --cells[0];
  }
  return 0;
}
