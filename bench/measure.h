// SPDX-License-Identifier: BSD-3-Clause
// What all benchmark programs share, in C and C++: the command line, the clock, the count of bodies
// that ran, and the one JSON line that a program prints. Knows no runtime.
#pragma once

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// `program <case> <workers> [size]`. `size` is the number of tasks (spawn, chain, iterate_spawn,
// iterate_chain), of steps (stencil, iterate_stencil), the argument (fib), or the number of round
// trips (suspend).
struct request {
  const char* benchmark;
  int workers;
  long size;
};

struct result {
  double ns;           // per operation
  long operations;     // in the timed pass
  double inline_share; // share of tasks whose body ran inside the call that created them; -1 if
                       // it was not measured
  long suspensions;    // in the timed pass, as the runtime counts them; -1 where it does not
};

static inline void fail(const char* what, long is, long should_be) {
  fprintf(stderr, "bench: %s: %ld, but should be %ld: the measurement is void\n", what, is,
          should_be);
  exit(1);
}
static inline void require_equal(const char* what, long is, long should_be) {
  if (is != should_be) fail(what, is, should_be);
}

static inline long default_size(const char* benchmark) {
  if (strncmp(benchmark, "spawn", 5) == 0) return 1000000;
  if (strcmp(benchmark, "chain") == 0) return 1000000;
  if (strcmp(benchmark, "stencil") == 0) return 10000;
  if (strcmp(benchmark, "fib") == 0) return 30;
  if (strcmp(benchmark, "suspend") == 0) return 500000;
  if (strncmp(benchmark, "release", 7) == 0) return 1000000;
  if (strcmp(benchmark, "iterate_stencil") == 0) return 10000;
  if (strncmp(benchmark, "iterate", 7) == 0) return 1000000;
  return 0;
}

// `cases` is what this program can do, for the message.
static inline struct request parse_request(int count, char** words, const char* cases) {
  struct request request = {"", 0, 0};
  if (count == 3 || count == 4) {
    request.benchmark = words[1];
    request.workers = atoi(words[2]);
    request.size = count == 4 ? atol(words[3]) : default_size(words[1]);
  }
  if (request.workers < 1 || request.size < 1) {
    fprintf(stderr, "usage: %s <case> <workers> [size]\ncases: %s\n", words[0], cases);
    exit(2);
  }
  return request;
}

static inline double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static inline void print_record(const char* system, struct request request, struct result result) {
  printf("{\"benchmark\": \"%s\", \"system\": \"%s\", \"workers\": %d, \"ns\": %.3f, "
         "\"operations\": %ld",
         request.benchmark, system, request.workers, result.ns, result.operations);
  if (result.inline_share >= 0) printf(", \"inline_share\": %.3f", result.inline_share);
  if (result.suspensions >= 0) printf(", \"suspensions\": %ld", result.suspensions);
  printf("}\n");
}

// ---- bodies that ran -------------------------------------------------------------------------

// Each thread counts in a slot of its own, on a cache line of its own. The slots outlive their
// threads. bodies_counted() is exact when the runtime has reported all tasks complete.
enum { body_slot_count = 1024 };
struct body_slot {
  long count;
  char padding[56];
};
static struct body_slot body_slots[body_slot_count];
static long body_slots_taken;
static __thread struct body_slot* body_slot_mine;

static inline void claim_body_slot(void) {
  const long index = __atomic_fetch_add(&body_slots_taken, 1, __ATOMIC_RELAXED);
  if (index >= body_slot_count) fail("threads that ran bodies", index, body_slot_count);
  body_slot_mine = &body_slots[index];
}
static inline void count_body(void) {
  if (body_slot_mine == NULL) claim_body_slot();
  ++body_slot_mine->count;
}
static inline long bodies_counted(void) {
  long sum = 0;
  for (int i = 0; i < body_slot_count; ++i) sum += body_slots[i].count;
  return sum;
}
