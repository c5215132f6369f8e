/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of OpenMP that stands still for gdb_test.py: a task runs, and one depends on it. */
#include <stdio.h>
#include <unistd.h>

static int x;

int main(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
  {
#pragma omp task depend(out : x) /* runs */
    {
      puts("ready");
      fflush(stdout);
      for (;;) pause();
    }
#pragma omp task depend(in : x) /* depends on it */
    x = 1;
  }
  return 0;
}
