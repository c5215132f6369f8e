// SPDX-License-Identifier: BSD-3-Clause
// A task that waits for ever for a lock of its creator, which waits for the task: the report must
// name the task by its function and the line of its construct.
#include <omp.h>

static omp_lock_t lock;

static void take(void) {
#pragma omp task  // line 9
  omp_set_lock(&lock);
#pragma omp taskwait
}

int main(void) {
  omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
#pragma omp single
  {
    omp_set_lock(&lock);
    take();
  }
  return 0;
}
