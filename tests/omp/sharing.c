// SPDX-License-Identifier: BSD-3-Clause
// What members of a team share: loops of every schedule, sections, single, ordered, critical,
// locks, barriers, nested regions, threadprivate. Stops at the first thing that is wrong; prints
// what must be the same under every OpenMP library.
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { count = 1003 };
static int seen[count];
static int threadprivate_number;
#pragma omp threadprivate(threadprivate_number)

static void clear(void) {
  for (int i = 0; i < count; ++i) seen[i] = 0;
}
static void all_once(void) {
  for (int i = 0; i < count; ++i) CHECK(seen[i] == 1);
}

#define LOOP(clause)                                                     \
  do {                                                                   \
    clear();                                                             \
    int last = -1;                                                       \
    _Pragma("omp parallel") {                                            \
      _Pragma(clause) for (int i = 0; i < count; ++i) {                  \
        __atomic_fetch_add(&seen[i], 1, __ATOMIC_RELAXED);               \
        last = i;                                                        \
      }                                                                  \
    }                                                                    \
    all_once();                                                          \
    CHECK(last == count - 1);                                            \
  } while (0)

static void loops(void) {
  LOOP("omp for lastprivate(last)");
  LOOP("omp for schedule(static, 7) lastprivate(last)");
  LOOP("omp for schedule(dynamic) lastprivate(last)");
  LOOP("omp for schedule(dynamic, 5) lastprivate(last)");
  LOOP("omp for schedule(monotonic: dynamic, 5) lastprivate(last)");
  LOOP("omp for schedule(guided, 3) lastprivate(last)");
  LOOP("omp for schedule(auto) lastprivate(last)");
  for (int kind = omp_sched_static; kind <= omp_sched_auto; ++kind) {
    omp_set_schedule((omp_sched_t)kind, 4);
    LOOP("omp for schedule(runtime) lastprivate(last)");
  }
}

// Loops at the ends of the types: chunks must not wrap around.
static void edges(void) {
  int iterations = 0;
#pragma omp parallel for schedule(dynamic, 1000) reduction(+ : iterations)
  for (unsigned long long i = ULLONG_MAX - 10; i < ULLONG_MAX; ++i) ++iterations;
  CHECK(iterations == 10);
  iterations = 0;
#pragma omp parallel for schedule(guided) reduction(+ : iterations)
  for (long i = LONG_MIN; i < LONG_MIN + 100; i += 3) ++iterations;
  CHECK(iterations == 34);
  iterations = 0;
#pragma omp parallel for schedule(dynamic, 2) reduction(+ : iterations)
  for (int i = 100; i > -100; i -= 7) ++iterations;
  CHECK(iterations == 29);
}

// A member may be several constructs ahead of another.
static void ahead(void) {
  int sum = 0;
#pragma omp parallel reduction(+ : sum)
  for (int round = 0; round < 200; ++round) {
#pragma omp for schedule(dynamic) nowait
    for (int i = 0; i < 5; ++i) ++sum;
#pragma omp single nowait
    ++sum;
#pragma omp sections nowait
    {
#pragma omp section
      ++sum;
#pragma omp section
      ++sum;
    }
  }
  CHECK(sum == 200 * 8);
}

static void ordered(void) {
  int next = 0;
#pragma omp parallel for ordered schedule(dynamic, 3)
  for (int i = 0; i < 200; ++i) {
#pragma omp ordered
    CHECK(next++ == i);
  }
  int grid[12][12] = {{0}};
#pragma omp parallel for ordered(2) schedule(dynamic)
  for (int i = 1; i < 12; ++i) {
    for (int j = 1; j < 12; ++j) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
      grid[i][j] = (i == 1 ? 0 : grid[i - 1][j]) + (j == 1 ? 1 : grid[i][j - 1]);
#pragma omp ordered depend(source)
    }
  }
  printf("grid %d\n", grid[11][11]);
}

static void locks(void) {
  omp_lock_t lock;
  omp_nest_lock_t nest;
  omp_init_lock(&lock);
  omp_init_nest_lock(&nest);
  int locked = 0, sum = 0;
#pragma omp parallel
  for (int i = 0; i < 200; ++i) {
    omp_set_lock(&lock);
    ++locked;
    omp_unset_lock(&lock);
#pragma omp critical(of_that_name)
    ++sum;
    omp_set_nest_lock(&nest);
    CHECK(omp_test_nest_lock(&nest) == 2);
    omp_unset_nest_lock(&nest);
    omp_unset_nest_lock(&nest);
  }
  CHECK(omp_test_lock(&lock) && !omp_test_lock(&lock));
  omp_destroy_lock(&lock);
  omp_destroy_nest_lock(&nest);
  CHECK(sum == 200 * omp_get_max_threads() && locked == sum);
}

static void nested(void) {
  omp_set_max_active_levels(3);
  int inner = 0;
#pragma omp parallel num_threads(3) reduction(+ : inner)
  {
    const int outer_number = omp_get_thread_num();
#pragma omp parallel num_threads(2) reduction(+ : inner)
    {
      CHECK(omp_get_level() == 2 && omp_get_num_threads() == 2);
      CHECK(omp_get_ancestor_thread_num(1) == outer_number && omp_get_team_size(1) == 3);
#pragma omp for schedule(dynamic)
      for (int i = 0; i < 10; ++i) ++inner;
#pragma omp barrier
      ++inner;
    }
    CHECK(omp_get_thread_num() == outer_number && omp_get_level() == 1);
  }
  CHECK(inner == 3 * (10 + 2));
  omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(2)
  CHECK(omp_get_num_threads() == 1 && omp_get_active_level() == 1 && omp_get_level() == 2);
}

static void persistence(void) {
  omp_set_dynamic(0);
  int value = 5;
#pragma omp parallel
  threadprivate_number = omp_get_thread_num() + 100;
  for (int round = 0; round < 100; ++round) {
#pragma omp parallel firstprivate(value)
    CHECK(threadprivate_number == omp_get_thread_num() + 100 && value == 5);
  }
#pragma omp parallel private(value)
  {
#pragma omp single copyprivate(value)
    value = 77;
    CHECK(value == 77);
  }
  threadprivate_number = 9;
#pragma omp parallel copyin(threadprivate_number)
  CHECK(threadprivate_number == 9);
}

int main(void) {
  loops();
  edges();
  ahead();
  ordered();
  locks();
  nested();
  persistence();
  printf("threads %d, level %d\n", omp_get_max_threads(), omp_get_level());
  return 0;
}
