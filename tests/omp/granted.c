// SPDX-License-Identifier: BSD-3-Clause
// Prints the numbers of processors and threads on the machine of tests/life/granted_machine.c.
#include <omp.h>
#include <stdio.h>

int main(void) {
  int threads = 0;
#pragma omp parallel
#pragma omp single
  threads = omp_get_num_threads();
  printf("%d processors, %d threads, %d in a region, limit %d\n", omp_get_num_procs(),
         omp_get_max_threads(), threads, omp_get_thread_limit() > 1000);
  return 0;
}
