/* SPDX-License-Identifier: BSD-3-Clause
   A program of which a tool hears known numbers of tasks, dependences and constructs, with any
   number of threads. Each of two rounds has 25 tasks, 5 of them undeferred, 3 of a taskloop, and 6
   with 7 dependences, 2 of which write; and 1 taskwait with a dependence. Locks, an ordered loop,
   sections and singles come in between. */
#include "check.h"

#include <omp.h>

static int chain[8];

/* One task that writes, four that read, one that writes. The taskwait is one more dependence. */
static void depend(void) {
  int sum = 0;
#pragma omp task depend(out : chain[0])
  chain[0] = 5;
  for (int i = 1; i < 5; ++i) {
#pragma omp task depend(in : chain[0]) shared(sum)
#pragma omp atomic
    sum += chain[0];
  }
#pragma omp task depend(inout : chain[0]) depend(in : chain[1])
  chain[0] = 7;
#pragma omp taskwait depend(in : chain[0])
#pragma omp taskwait
  CHECK(sum == 20);
}

static void create(void) {
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
#pragma omp task shared(sum)
    {
#pragma omp atomic
      sum += i;
#pragma omp taskyield
    }
  }
  for (int i = 0; i < 5; ++i) {
#pragma omp task if (0) shared(sum)
#pragma omp atomic
    sum += 1;
  }
#pragma omp taskwait
#pragma omp taskgroup
  {
#pragma omp task shared(sum)
#pragma omp critical
    sum += 100;
  }
#pragma omp taskloop num_tasks(3) shared(sum)
  for (int i = 0; i < 9; ++i) {
#pragma omp atomic
    sum += 1000;
  }
  CHECK(sum == 45 + 5 + 100 + 9000);
}

static void share(void) {
  static int sum;
#pragma omp single
  sum = 0;
#pragma omp for schedule(dynamic, 2)
  for (int i = 0; i < 10; ++i) {
#pragma omp atomic
    sum += i;
  }
#pragma omp for ordered schedule(dynamic)
  for (int i = 0; i < 10; ++i) {
#pragma omp ordered
    sum += i;
  }
#pragma omp sections
  {
#pragma omp section
#pragma omp atomic
    sum += 10;
#pragma omp section
#pragma omp atomic
    sum += 20;
  }
#pragma omp barrier
  CHECK(sum == 45 + 45 + 30);
}

static void lock(void) {
  static omp_lock_t plain;
  static omp_nest_lock_t nested;
  static int held;
#pragma omp single
  {
    held = 0;
    omp_init_lock(&plain);
    omp_init_nest_lock(&nested);
  }
  omp_set_lock(&plain);
  ++held;
  omp_unset_lock(&plain);
  omp_set_nest_lock(&nested);
  CHECK(omp_test_nest_lock(&nested) == 2);
  omp_unset_nest_lock(&nested);
  omp_unset_nest_lock(&nested);
#pragma omp barrier
#pragma omp single
  {
    CHECK(held == omp_get_num_threads());
    omp_destroy_lock(&plain);
    omp_destroy_nest_lock(&nested);
  }
}

int main(void) {
  for (int round = 0; round < 2; ++round) {
#pragma omp parallel
    {
#pragma omp single
      create();
#pragma omp single
      depend();
      share();
      lock();
#pragma omp parallel num_threads(2)
#pragma omp critical
      ++chain[7];
    }
  }
  puts("done");
  return 0;
}
