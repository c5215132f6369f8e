// SPDX-License-Identifier: BSD-3-Clause
// Constructs for which LLVM's compilers call functions of their own. Stops at the first thing that
// is wrong. `mixed`, of mixed.c, was compiled by GCC: one runtime must serve both.
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { count = 1000 };

int mixed(int threads);
// Compilers of Intel call these.
void __kmpc_atomic_cmplx8_add(void* place, int thread, double _Complex* value, double _Complex by);
void __kmpc_atomic_float10_sub_rev(void* place, int thread, long double* value, long double from);
int __kmpc_atomic_fixed4_max_cpt(void* place, int thread, int* value, int other, int after);

static int kept;
#pragma omp threadprivate(kept)
static struct { int set; } started = {7};
#pragma omp threadprivate(started)

static void loops(void) {
  long total = 0;
  int last = -1;
#pragma omp parallel for schedule(static, 3) reduction(+ : total) lastprivate(last)
  for (int i = 0; i < count; ++i) {
    total += i;
    last = i;
  }
  CHECK(total == (long)count * (count - 1) / 2 && last == count - 1);
  unsigned long long steps = 0;
#pragma omp parallel for schedule(guided) reduction(+ : steps)
  for (unsigned long long i = UINT64_MAX - 100; i < UINT64_MAX - 3; i += 7) ++steps;
  CHECK(steps == 14);
  int next = 0;
#pragma omp parallel for ordered schedule(dynamic, 2)
  for (int i = 20; i > -20; --i) {
#pragma omp ordered
    CHECK(next++ == 20 - i);
  }
  static int grid[20][20];
#pragma omp parallel for ordered(2) schedule(dynamic)
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 20; ++j) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
      grid[i][j] = 1 + (i > 0 ? grid[i - 1][j] : 0) + (j > 0 ? grid[i][j - 1] : 0);
#pragma omp ordered depend(source)
    }
  }
  CHECK(grid[1][1] == 5);
  int part = 0;
#pragma omp teams distribute parallel for num_teams(3) thread_limit(2) reduction(+ : part)
  for (int i = 0; i < count; ++i) part += 1;
  CHECK(part == count);
}

static void sharing(void) {
  int first = 0, singles = 0, sections = 0, masters = 0, best = -1;
#pragma omp parallel num_threads(4) reduction(max : best)
  {
    int mine = omp_get_thread_num();
    best = mine;
#pragma omp single copyprivate(mine)
    mine = 40 + mine - mine;
    CHECK(mine == 40);
#pragma omp single
    ++singles;
#pragma omp masked filter(1)
    ++masters;
#pragma omp sections
    {
#pragma omp section
#pragma omp atomic
      ++sections;
#pragma omp section
#pragma omp atomic
      ++sections;
    }
#pragma omp critical(named)
    ++first;
    kept = mine + omp_get_thread_num();
    CHECK(started.set == 7);
#pragma omp barrier
    CHECK(kept == 40 + omp_get_thread_num());
  }
  CHECK(first == 4 && singles == 1 && sections == 2 && masters == 1 && best == 3);
  _Complex double z = 0;
  long double longest = 8;
  int most = 3;
#pragma omp parallel num_threads(3)
  for (int i = 0; i < 100; ++i) {
    __kmpc_atomic_cmplx8_add(NULL, 0, &z, 1.0i);
    __kmpc_atomic_float10_sub_rev(NULL, 0, &longest, 10);
    CHECK(__kmpc_atomic_fixed4_max_cpt(NULL, 0, &most, i, 1) >= i);
  }
  CHECK(__imag__ z == 300 && longest == 8 && most == 99);
}

static void tasks(void) {
  long sum = 0, loop = 0;
  int last = 0, chain = 0, parts = 0;
#pragma omp parallel
  {
#pragma omp single
    {
#pragma omp taskgroup task_reduction(+ : sum)
      for (int i = 0; i < count; ++i) {
#pragma omp task in_reduction(+ : sum) firstprivate(i)
        sum += i;
      }
#pragma omp taskloop grainsize(13) lastprivate(last) reduction(+ : loop)
      for (int i = 0; i < count; ++i) {
        loop += 2;
        last = i;
      }
      for (int i = 0; i < 50; ++i) {
#pragma omp task depend(inout : chain) priority(1) if (i % 3 != 0)
        chain = chain * 2 % 1009 + i;
      }
#pragma omp taskwait depend(in : chain)
#pragma omp task untied shared(parts)
      {
#pragma omp atomic
        ++parts;
#pragma omp taskyield
#pragma omp atomic
        ++parts;
#pragma omp task shared(parts)
#pragma omp atomic
        ++parts;
#pragma omp taskwait
#pragma omp atomic
        ++parts;
      }
    }
  }
  CHECK(sum == (long)count * (count - 1) / 2 && loop == 2L * count && last == count - 1);
  int expected = 0;
  for (int i = 0; i < 50; ++i) expected = expected * 2 % 1009 + i;
  CHECK(chain == expected && parts == 4);
  long members = 0;
#pragma omp parallel reduction(task, + : members)
  {
#pragma omp task in_reduction(+ : members)
    members += 1;
    members += 1;
  }
  CHECK(members == 2L * omp_get_max_threads());
}

// Each task waits until two threads have begun one, without a scheduling point. So no thread may
// begin all of them.
static void untied_tasks_are_for_all_threads(void) {
  enum { shared_tasks = 25, patience_ms = 10000 };
  unsigned begun = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < shared_tasks && omp_get_num_threads() > 1; ++i) {
#pragma omp task untied shared(begun)
    {
      unsigned now = 0;
#pragma omp atomic
      begun |= 1u << omp_get_thread_num() % 32;
      for (int ms = 0; (now & (now - 1)) == 0; ++ms) {
        CHECK(ms < patience_ms);
        usleep(1000);
#pragma omp atomic read
        now = begun;
      }
    }
  }
}

static void events(void) {
  int after = 0;
#pragma omp parallel
#pragma omp single
  {
    omp_event_handle_t event = (omp_event_handle_t)0;
#pragma omp task detach(event) depend(out : after) shared(after)
    after = 1;
#pragma omp task depend(in : after) shared(after)
    after += 1;
#pragma omp task shared(after)
    omp_fulfill_event(event);
  }
  CHECK(after == 2);
  int found = 0;
#pragma omp parallel for schedule(dynamic) shared(found)
  for (int i = 0; i < 10000; ++i) {
    if (i == 50) {
#pragma omp atomic
      ++found;
#pragma omp cancel for
    }
#pragma omp cancellation point for
  }
  CHECK(found == 1);
  omp_nest_lock_t nest;
  omp_init_nest_lock(&nest);
  CHECK(omp_test_nest_lock(&nest) == 1 && omp_test_nest_lock(&nest) == 2);
  omp_unset_nest_lock(&nest);
  omp_unset_nest_lock(&nest);
  omp_destroy_nest_lock(&nest);
}

static void* fulfill_later(void* event) {
  usleep(50000);
  omp_fulfill_event((omp_event_handle_t)(uintptr_t)event);
  return NULL;
}

// Outside of regions too, a taskwait waits for the events of tasks, as does the end of a taskgroup.
static void events_outside_of_regions(void) {
  pthread_t thread[2];
  for (int way = 0; way < 2; ++way) {
    omp_event_handle_t event = (omp_event_handle_t)0;
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    if (way == 0) {
#pragma omp task detach(event) shared(thread)
      CHECK(pthread_create(&thread[way], NULL, fulfill_later, (void*)(uintptr_t)event) == 0);
#pragma omp taskwait
    } else {
#pragma omp taskgroup
      {
#pragma omp task detach(event) shared(thread)
        CHECK(pthread_create(&thread[way], NULL, fulfill_later, (void*)(uintptr_t)event) == 0);
      }
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    const double ms = (double)(after.tv_sec - before.tv_sec) * 1e3 +
                      (double)(after.tv_nsec - before.tv_nsec) / 1e6;
    CHECK(ms > 49);
    CHECK(pthread_join(thread[way], NULL) == 0);
  }
}

int main(void) {
  events_outside_of_regions();
  loops();
  sharing();
  tasks();
  untied_tasks_are_for_all_threads();
  events();
  int inner = 0;
#pragma omp parallel num_threads(3)
  {
    CHECK(mixed(2) == 2 || omp_get_max_active_levels() == 1);
#pragma omp atomic
    ++inner;
  }
  CHECK(inner == 3 && mixed(3) == 3);
  puts("done");
  return 0;
}
