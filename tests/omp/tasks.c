// SPDX-License-Identifier: BSD-3-Clause
// Tasks, with every clause. Stops at the first thing that is wrong; prints what must be the same
// under every OpenMP library.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

static int fib(const int n) {
  if (n < 2) return n;
  int a, b;
#pragma omp task shared(a) final(n < 8)
  a = fib(n - 1);
#pragma omp task shared(b) mergeable untied
  b = fib(n - 2);
#pragma omp taskwait
  return a + b;
}

static void recursion(void) {
  int result = 0;
#pragma omp parallel
#pragma omp single
  result = fib(16);
  printf("fib %d\n", result);
}

// Each task checks that what it follows has run.
static void dependences(void) {
  int chain = 0, readers = 0, set = 0, sum = 0;
#pragma omp parallel
#pragma omp single
  {
    for (int i = 0; i < 100; ++i) {
#pragma omp task depend(inout : chain) firstprivate(i) priority(i % 3)
      CHECK(chain++ == i);
    }
    for (int i = 0; i < 10; ++i) {
#pragma omp task depend(in : chain) shared(readers)
      {
        CHECK(chain == 100);
#pragma omp atomic
        ++readers;
      }
    }
#pragma omp task depend(out : chain)
    CHECK(readers == 10);
    for (int i = 0; i < 20; ++i) {
#pragma omp task depend(mutexinoutset : set)
      ++set;
    }
#pragma omp task depend(in : set)
    CHECK(set == 20);
    omp_depend_t object;
#pragma omp depobj(object) depend(inout : sum)
    for (int i = 0; i < 10; ++i) {
#pragma omp task depend(depobj : object) firstprivate(i)
      sum = sum * 3 + i;
    }
#pragma omp taskwait depend(in : sum)
    printf("sum %d\n", sum);
#pragma omp depobj(object) destroy
    int parts[8] = {0};
    for (int i = 0; i < 8; ++i) {
#pragma omp task depend(out : parts[i]) firstprivate(i) shared(parts)
      parts[i] = i;
    }
#pragma omp task depend(iterator(i = 0 : 8), in : parts[i]) shared(parts)
    for (int i = 0; i < 8; ++i) CHECK(parts[i] == i);
#pragma omp task if (0) depend(inout : parts[3]) shared(parts)
    {
      CHECK(parts[3] == 3);
      parts[3] = 33;
    }
    CHECK(parts[3] == 33);
#pragma omp taskwait
  }
}

static void groups(void) {
  int done = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskgroup
    for (int i = 0; i < 20; ++i) {
#pragma omp task shared(done)
      {
#pragma omp task shared(done)  // a grandchild, which taskwait would not wait for
        {
#pragma omp taskyield
#pragma omp atomic
          ++done;
        }
      }
    }
    CHECK(done == 20);
  }
  int after = 0;
#pragma omp parallel
  {
#pragma omp task shared(after)
    {
#pragma omp atomic
      ++after;
    }
#pragma omp barrier
    CHECK(after == omp_get_num_threads());
  }
}

static void loops(void) {
  enum { count = 777 };
  static int seen[count];
  long sum = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskloop grainsize(10)
    for (int i = 0; i < count; ++i) ++seen[i];
#pragma omp taskloop num_tasks(13) reduction(+ : sum)
    for (int i = count - 1; i >= 0; i -= 2) sum += i;
#pragma omp taskloop nogroup if (0)
    for (unsigned long long i = 0; i < count; ++i) ++seen[i];
  }
  for (int i = 0; i < count; ++i) CHECK(seen[i] == 2);
  printf("taskloop %ld\n", sum);
}

static void reductions(void) {
  int sum = 0, product = 1, all = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sum) task_reduction(* : product)
  for (int i = 0; i < 30; ++i) {
#pragma omp task in_reduction(+ : sum) in_reduction(* : product) firstprivate(i)
    {
      sum += i;
      if (i < 3) product *= i + 2;
    }
  }
#pragma omp parallel reduction(task, + : all)
  {
#pragma omp task in_reduction(+ : all)
    ++all;
    ++all;
  }
  CHECK(all == 2 * omp_get_max_threads());
  all = 0;
#pragma omp parallel
#pragma omp for reduction(task, + : all)
  for (int i = 0; i < 20; ++i) {
#pragma omp task in_reduction(+ : all)
    ++all;
  }
  printf("reductions %d %d %d\n", sum, product, all);
}

static void detached(void) {
  int order = 0;
#pragma omp parallel
#pragma omp single
  {
    omp_event_handle_t event;
    int data = 0;
#pragma omp task detach(event) depend(out : data) shared(data)
    ++data;
#pragma omp task depend(in : data) shared(order, data)
    {
      CHECK(order == 1 && data == 1);
      order = 2;
    }
#pragma omp task shared(order) firstprivate(event)
    {
      order = 1;
      omp_fulfill_event(event);
    }
#pragma omp taskwait
    CHECK(order == 2);
  }
}

// Large and aligned data are copied whole.
struct Large {
  _Alignas(128) unsigned char bytes[5000];
};
static void data(void) {
  struct Large large;
  for (int i = 0; i < 5000; ++i) large.bytes[i] = (unsigned char)i;
#pragma omp parallel
#pragma omp single
  for (int round = 0; round < 20; ++round) {
#pragma omp task firstprivate(large)
    {
#ifndef __clang__  // it does not tell the library the alignment
      CHECK((uintptr_t)&large % 128 == 0);
#endif
      for (int i = 0; i < 5000; ++i) CHECK(large.bytes[i] == (unsigned char)i);
    }
  }
}

static void cancelled(void) {
  if (!omp_get_cancellation()) return;
  int ran = 0;
#pragma omp parallel
  {
#pragma omp for
    for (int i = 0; i < 1000; ++i) {
#pragma omp cancel for
#pragma omp atomic
      ++ran;
    }
#pragma omp barrier
  }
  CHECK(ran == 0);
#pragma omp parallel
  {
#pragma omp cancel parallel
    exit(1);
  }
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup
  {
#pragma omp task
    {
#pragma omp cancel taskgroup
      exit(1);
    }
  }
}

int main(void) {
  recursion();
  dependences();
  groups();
  loops();
  reductions();
  detached();
  data();
  cancelled();
#pragma omp task  // outside of all regions
  printf("final %d, level %d\n", omp_in_final(), omp_get_level());
  return 0;
}
