// SPDX-License-Identifier: BSD-3-Clause
// Sets variables of OpenMP before its first use, as programs of LLVM's compilers may; with an
// argument, in a child of fork.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1 && fork() != 0) {
    int status = 0;
    return wait(&status) < 0 || status != 0;
  }
  setenv("OMP_NUM_THREADS", "3", 1);
  setenv("OMP_SCHEDULE", "dynamic,7", 1);
  int threads = 0;
#pragma omp parallel reduction(+ : threads)
  ++threads;
  omp_sched_t kind;
  int chunk = 0;
  omp_get_schedule(&kind, &chunk);
  printf("%d threads, schedule %d,%d\n", threads, (int)(kind & 7), chunk);
  return 0;
}
