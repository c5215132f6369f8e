// SPDX-License-Identifier: BSD-3-Clause
// Tasks beyond those that a team keeps queued, which may run as calls of their creator: whatever
// they do must be theirs all the same. Stops at the first thing that is wrong; prints what must be
// the same under every OpenMP library.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { crowd = 3000 };

static int on_stack_of(const char* const creator) {
  const char here = 0;
  return labs((long)((intptr_t)&here - (intptr_t)creator)) < 8192;
}

// With one thread no other takes queued tasks, so all but the first 64 are calls, if any may be.
static void counted(void) {
  int calls = 0, ran = 0;
#pragma omp parallel
#pragma omp single
  {
    const char creator = 0;
#pragma omp taskgroup
    for (int i = 0; i < crowd; ++i) {
#pragma omp task shared(calls, ran, creator)
      {
#pragma omp atomic
        ++ran;
        if (on_stack_of(&creator)) {
#pragma omp atomic
          ++calls;
        }
      }
    }
    CHECK(ran == crowd);
  }
  if (omp_get_max_threads() == 1) printf("calls: %s\n", calls > crowd / 2 ? "most" : "few");
}

// Children, groups and dependences of each are its own.
static void families(void) {
  int total = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < crowd; ++i) {
#pragma omp task shared(total) firstprivate(i)
    {
      int children = 0, chain = 0, group = 0;
      for (int child = 0; child < i % 7; ++child) {
#pragma omp task shared(children)
        {
#pragma omp task shared(children)
          {
#pragma omp atomic
            ++children;
          }
#pragma omp taskwait
#pragma omp atomic
          ++children;
        }
#pragma omp task depend(inout : chain) shared(chain) firstprivate(child)
        CHECK(chain++ == child);
      }
#pragma omp task if (0) depend(in : chain) shared(chain) firstprivate(i)
      CHECK(chain == i % 7);
#pragma omp taskwait
      CHECK(children == 2 * (i % 7));
#pragma omp taskgroup
      {
#pragma omp task shared(group)
        {
#pragma omp task shared(group)
          {
#pragma omp atomic
            ++group;
          }
        }
      }
      CHECK(group == 1);
#pragma omp atomic
      total += children;
    }
  }
  printf("children %d\n", total);
}

// A crowd inside of a crowd: calls in calls.
static void nested(void) {
  int leaves = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < crowd; ++i) {
#pragma omp task shared(leaves)
    {
      int mine = 0;
      for (int j = 0; j < 5; ++j) {
#pragma omp task shared(mine)
        {
          int under = 0;
#pragma omp taskloop shared(under) num_tasks(3)
          for (int k = 0; k < 6; ++k) {
#pragma omp atomic
            ++under;
          }
          CHECK(under == 6);
#pragma omp atomic
          mine += under;
        }
      }
#pragma omp taskwait
      CHECK(mine == 30);
#pragma omp atomic
      leaves += mine;
    }
  }
  printf("leaves %d\n", leaves);
}

// A task's changes of its own settings do not change its creator's; locks and regions work within.
static void surroundings(void) {
  int sum = 0, locked = 0, members = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel
#pragma omp single
  {
    const int threads = omp_get_max_threads(), number = omp_get_thread_num();
    for (int i = 0; i < crowd; ++i) {
#pragma omp task shared(sum, locked, members, lock) firstprivate(i) final(i % 5 == 0)
      {
        CHECK(omp_in_final() == (i % 5 == 0));
        CHECK(omp_get_max_threads() == threads);
        CHECK(omp_get_thread_num() < omp_get_num_threads());
        omp_set_num_threads(3);
        omp_set_schedule(omp_sched_dynamic, 7);
#pragma omp critical
        ++sum;
        omp_set_lock(&lock);
        ++locked;
        omp_unset_lock(&lock);
#pragma omp taskyield
        if (i % 100 == 0) {
#pragma omp parallel shared(members)
          {
            CHECK(omp_get_level() == 2);
#pragma omp atomic
            ++members;
          }
        }
      }
      CHECK(omp_get_max_threads() == threads && omp_get_thread_num() == number);
      CHECK(!omp_in_final());
    }
  }
  omp_destroy_lock(&lock);
  printf("sum %d and %d, members %d\n", sum, locked, members);
}

static void reductions(void) {
  long sum = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sum)
  for (int i = 0; i < crowd; ++i) {
#pragma omp task in_reduction(+ : sum) firstprivate(i)
    sum += i;
  }
  printf("reduced %ld\n", sum);
}

static void cancelled(void) {
  int ran = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup
  for (int i = 0; i < crowd; ++i) {
#pragma omp task shared(ran) firstprivate(i)
    {
      if (i == crowd / 2) {
#pragma omp cancel taskgroup
      }
#pragma omp atomic
      ++ran;
    }
  }
  if (!omp_get_cancellation()) CHECK(ran == crowd);
  if (omp_get_cancellation()) CHECK(ran < crowd);
}

// Outside of a team all tasks are calls.
static void outside(void) {
  int ran = 0;
#pragma omp target map(tofrom : ran)
  {
#pragma omp task shared(ran) final(1)
    {
      CHECK(omp_in_final());
#pragma omp task shared(ran)
      {
        CHECK(omp_in_final());
        ++ran;
      }
      ++ran;
    }
    CHECK(!omp_in_final());
    ++ran;
  }
  CHECK(!omp_in_final());
  printf("outside %d\n", ran);
}

int main(void) {
  outside();
  counted();
  families();
  nested();
  surroundings();
  reductions();
  cancelled();
  return 0;
}
