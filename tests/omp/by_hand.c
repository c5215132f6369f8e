// SPDX-License-Identifier: BSD-3-Clause
// Calls of LLVM's compilers, written by hand: a program of GCC, whose sanitizers see the runtime
// too, makes them in its own regions. Each part is what members of a team do at once. Stops at the
// first thing that is wrong.
#include <omp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

typedef struct { int32_t reserved1, flags, reserved2, reserved3; const char* text; } Ident;
typedef struct Task Task;
typedef int32_t (*Routine)(int32_t thread, Task* task);
struct Task {
  void* shareds;
  Routine routine;
  int32_t part;
  union { int32_t priority; Routine destructors; } first, second;
  long own[2];  // what firstprivate variables are to a compiler
};
typedef struct { int64_t lower, upper, step; } Dimension;
typedef struct {
  void* variable;
  void* original;
  size_t bytes;
  void (*initialise)(void* copy, void* original);
  void (*destroy)(void* copy);
  void (*combine)(void* into, void* copy);
  uint32_t flags;
} Reduced;
enum { tied = 1, proxy = 16, detachable = 64 };

Task* __kmpc_omp_task_alloc(const Ident*, int32_t, int32_t flags, size_t bytes, size_t shareds,
                            Routine);
int32_t __kmpc_omp_task(const Ident*, int32_t, Task*);
void* __kmpc_task_allow_completion_event(const Ident*, int32_t, Task*);
void __kmpc_proxy_task_completed_ooo(Task*);
void __kmpc_doacross_init(const Ident*, int32_t, int32_t dimensions, const Dimension*);
void __kmpc_doacross_wait(const Ident*, int32_t, const int64_t*);
void __kmpc_doacross_post(const Ident*, int32_t, const int64_t*);
void __kmpc_doacross_fini(const Ident*, int32_t);
void* __kmpc_taskred_modifier_init(const Ident*, int32_t, int32_t is_loop, int32_t count,
                                   const Reduced*);
void __kmpc_task_reduction_modifier_fini(const Ident*, int32_t, int32_t is_loop);
void* __kmpc_task_reduction_get_th_data(int32_t, void* group, void* variable);

#define PLACE(line) {0, 2, 0, 0, ";by_hand.c;function;" #line ";1;;"}
static const Ident places[] = {PLACE(1), PLACE(2), PLACE(3), PLACE(4), PLACE(5), PLACE(6)};

// Loops of a stencil, one after the other without a barrier: members are in different ones.
enum { rows = 24, columns = 20, rounds = 12 };
static int grid[rounds][rows][columns];

static void wait_for(int64_t row, int64_t column) {
  const int64_t iteration[] = {row, column};
  __kmpc_doacross_wait(places, 0, iteration);
}

static void relax(int (*cells)[columns], int row) {
  for (int column = 0; column < columns; ++column) {
    wait_for(row - 1, column);
    wait_for(row, column - 1);
    cells[row][column] = 1 + (row > 0 ? cells[row - 1][column] : 0) +
                         (column > 0 ? cells[row][column - 1] : 0);
    const int64_t iteration[] = {row, column};
    __kmpc_doacross_post(places, 0, iteration);
  }
}

static void ordered_loops(void) {
  const Dimension loops[] = {{0, rows - 1, 1}, {0, columns - 1, 1}};
#pragma omp parallel
  for (int round = 0; round < rounds; ++round) {
    __kmpc_doacross_init(places, 0, 2, loops);
#pragma omp for schedule(dynamic) nowait
    for (int row = 0; row < rows; ++row) relax(grid[round], row);
    __kmpc_doacross_fini(places, 0);
  }
  for (int round = 0; round < rounds; ++round) {
    CHECK(grid[round][1][1] == 5);
    CHECK(grid[round][rows - 1][columns - 1] == grid[0][rows - 1][columns - 1]);
  }
}

static void begin_at_zero(void* copy, void* original) { (void)original, *(long*)copy = 0; }
static void add_up(void* into, void* copy) { *(long*)into += *(long*)copy; }

static int32_t add(int32_t thread, Task* task) {
  long* const copy = __kmpc_task_reduction_get_th_data(thread, NULL, task->shareds);
  *copy += task->own[0];
  return 0;
}

static Task* made(int number, int32_t flags, Routine routine) {
  Task* const task =
      __kmpc_omp_task_alloc(&places[number % 6], 0, flags, sizeof(Task), 0, routine);
  task->own[0] = number;
  return task;
}

// The copies of a reduction belong to all members. The last one to end its part combines them.
static void reductions(void) {
  enum { tasks = 60 };
  for (int round = 0; round < rounds; ++round) {
    long sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
      const Reduced reduced = {&sum, &sum, sizeof sum, begin_at_zero, NULL, add_up, 0};
      void* const group = __kmpc_taskred_modifier_init(places, 0, 0, 1, &reduced);
      CHECK(group != NULL);
      for (int number = 0; number < tasks; ++number) {
        Task* const task = made(number, tied, add);
        task->shareds = &sum;
        CHECK(__kmpc_omp_task(&places[number % 6], 0, task) == 0);
      }
      __kmpc_task_reduction_modifier_fini(places, 0, 0);
    }
    CHECK(sum == (long)omp_get_max_threads() * tasks * (tasks - 1) / 2);
  }
}

// A thread of the program's own completes tasks, some before they are submitted.
static long completed;
static int32_t count(int32_t thread, Task* task) {
  (void)thread;
#pragma omp atomic
  completed += task->own[0];
  return 0;
}

enum { proxies = 40 };
static Task* waiting[proxies];
static omp_event_handle_t events[proxies];
static void* complete(void* unused) {
  for (int number = 0; number < proxies; ++number) {
    __kmpc_proxy_task_completed_ooo(waiting[number]);
    omp_fulfill_event(events[number]);
  }
  return unused;
}

static void completions(void) {
  for (int round = 0; round < rounds; ++round) {
    completed = 0;
#pragma omp parallel
#pragma omp single
    {
      Task* tasks[proxies];
      for (int number = 0; number < proxies; ++number) {
        waiting[number] = made(number, tied | proxy, count);
        tasks[number] = made(number, tied | detachable, count);
        events[number] = (omp_event_handle_t)(uintptr_t)__kmpc_task_allow_completion_event(
            places, 0, tasks[number]);
      }
      pthread_t thread;
      CHECK(pthread_create(&thread, NULL, complete, NULL) == 0);
#pragma omp taskgroup
      for (int number = 0; number < proxies; ++number) {
        (void)__kmpc_omp_task(places, 0, waiting[number]);
        (void)__kmpc_omp_task(places, 0, tasks[number]);
      }
      CHECK(completed == 2L * proxies * (proxies - 1) / 2);
      CHECK(pthread_join(thread, NULL) == 0);
    }
  }
}

int main(void) {
  ordered_loops();
  reductions();
  completions();
  puts("done");
  return 0;
}
