// SPDX-License-Identifier: BSD-3-Clause
// Teams of many threads. teams <threads>: what a region does, twice, and nested regions of one
// thread in each of its threads.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

static void use_team(const int threads) {
  int ran = 0;
  int tasks = 0;
  int iterations = 0;
  int inner = 0;
  int team = 0;
#pragma omp parallel num_threads(threads) reduction(+ : ran, inner)
  {
    ran += 1;
#pragma omp single
    {
      team = omp_get_num_threads();
      for (int i = 0; i < threads; ++i) {
#pragma omp task shared(tasks)
        {
#pragma omp atomic
          ++tasks;
        }
      }
    }
    CHECK(tasks == threads);  // the barrier of single
#pragma omp for schedule(dynamic) reduction(+ : iterations)
    for (int i = 0; i < threads; ++i) ++iterations;
    CHECK(iterations == threads);
#pragma omp task shared(tasks)
    {
#pragma omp atomic
      ++tasks;
    }
#pragma omp parallel num_threads(1) reduction(+ : inner)
    inner += omp_get_num_threads();
#pragma omp barrier
    CHECK(tasks == 2 * threads);
  }
  CHECK(ran == threads && team == threads && inner == threads);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int threads = atoi(argv[1]);
  for (int region = 0; region < 2; ++region) use_team(threads);
  printf("two regions of %d threads\n", threads);
  return 0;
}
