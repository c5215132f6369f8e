/* SPDX-License-Identifier: BSD-3-Clause */
/* Data with owners from C: each rank owns a part of a vector; its sum is a reduction, and the mean
   goes from there to all ranks by one broadcast. No rank sends anything itself. */
#include <stdio.h>

#include "imbrex/data.h"

enum { COUNT = 1000 };

static int fill(void* rank, const imbrex_data_view* views) {
  double* part = views[0].memory;
  for (int i = 0; i < COUNT; ++i) part[i] = *(int*)rank + 1;
  return 0;
}

static int add(void* unused, const imbrex_data_view* views) {
  const double* part = views[0].memory;
  double* sum = views[1].memory;
  (void)unused;
  for (int i = 0; i < COUNT; ++i) *sum += part[i];
  return 0;
}

static int center(void* ranks, const imbrex_data_view* views) {
  const double mean = *(const double*)views[0].memory / COUNT / *(int*)ranks;
  double* part = views[1].memory;
  for (int i = 0; i < COUNT; ++i) part[i] -= mean;
  return 0;
}

static void add_all(void* into, const void* from, size_t count) {
  for (size_t i = 0; i < count; ++i) ((double*)into)[i] += ((const double*)from)[i];
}
static void set_zero(void* memory, size_t count) {
  for (size_t i = 0; i < count; ++i) ((double*)memory)[i] = 0;
}
static const imbrex_data_reduction sum_of_doubles = {add_all, set_zero};

static void check(int code) {
  if (code == IMBREX_SUCCESS) return;
  fprintf(stderr, "%s\n", imbrex_message());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  imbrex_space_t space;
  imbrex_data_t parts[64], sum;
  imbrex_data_view mine;
  int ranks, rank, right;
  MPI_Init(&argc, &argv);
  check(imbrex_space_create(MPI_COMM_WORLD, NULL, &space));
  ranks = imbrex_space_size(space) < 64 ? imbrex_space_size(space) : 64;
  rank = imbrex_space_rank(space);
  for (int i = 0; i < ranks; ++i) {
    check(imbrex_data_create(space, i, COUNT, 1, sizeof(double), NULL, 0, "part", &parts[i]));
  }
  check(imbrex_data_create(space, 0, 1, 1, sizeof(double), NULL, 0, "sum", &sum));
  for (int i = 0; i < ranks; ++i) {
    const imbrex_data_access filled[] = {{parts[i], IMBREX_OUT, NULL}};
    const imbrex_data_access added[] = {{parts[i], IMBREX_IN, NULL},
                                        {sum, IMBREX_DATA_REDUCE, &sum_of_doubles}};
    imbrex_data_task_spec task = IMBREX_DATA_TASK("fill", fill);
    task.argument = &i, task.argument_bytes = sizeof i;
    task.access_count = 1, task.accesses = filled;
    check(imbrex_data_launch(space, &task));
    task.name = "add", task.body = add, task.argument_bytes = 0;
    task.access_count = 2, task.accesses = added;
    task.on = i; /* on elements of its own, which are combined before the first that reads them */
    check(imbrex_data_launch(space, &task));
  }
  for (int i = 0; i < ranks; ++i) {
    const imbrex_data_access centered[] = {{sum, IMBREX_IN, NULL},
                                           {parts[i], IMBREX_INOUT, NULL}};
    imbrex_data_task_spec task = IMBREX_DATA_TASK("center", center);
    task.argument = &ranks;
    task.access_count = 2, task.accesses = centered;
    check(imbrex_data_launch(space, &task));
  }
  check(imbrex_space_finish(space));
  right = 1;
  if (rank < ranks) {
    check(imbrex_data_get(parts[rank], &mine));
    right = *(double*)mine.memory == rank + 1 - (ranks + 1) / 2.0;
    printf("rank %d: elements of %.2f\n", rank, *(double*)mine.memory);
  }
  check(imbrex_space_free(&space));
  MPI_Finalize();
  return right ? 0 : 1;
}
