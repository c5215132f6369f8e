/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop in C whose tasks are created once: heat in a rod, until it changes no more. The program is
   built a second time with -DIMBREX_SERIAL, without the runtime. */
#include <imbrex/imbrex.h>

#include <stdio.h>

enum { blocks = 4, width = 8, points = blocks * width };

static double rods[2][points + 2]; /* the first and last point: the ends, which stay as they are */
static double changes[blocks];
static int64_t iterations;

static double larger(double a, double b) { return a > b ? a : b; }
static double distance(double a, double b) { return larger(a - b, b - a); }

/* The body of a task, which has a copy of the number of its block. */
static int relax(void* argument, void* result) {
  const int block = *(const int*)argument;
  const double* u = rods[imbrex_iteration() % 2];
  double* v = rods[(imbrex_iteration() + 1) % 2];
  double change = 0;
  for (int x = 1 + block * width; x <= (block + 1) * width; ++x) {
    v[x] = (u[x - 1] + u[x + 1]) / 2;
    change = larger(change, distance(v[x], u[x]));
  }
  changes[block] = change;
  return result == NULL ? 0 : 1;
}

static int test(void* argument, void* result) {
  double change = 0;
  for (int block = 0; block < blocks; ++block) change = larger(change, changes[block]);
  if (change > 1e-6) return 0;
  iterations = imbrex_iteration() + 1;
  return argument == result ? imbrex_stop_iterating() : 1;
}

/* Creates the tasks of iteration i. Block b of the rod is named by its first point. */
static int sweep(void* argument, int64_t i) {
  double* u = rods[i % 2];
  double* v = rods[(i + 1) % 2];
  (void)argument;
  for (int block = 0; block < blocks; ++block) {
    double* mine = u + 1 + block * width;
    const imbrex_access accesses[] = {{IMBREX_IN, block > 0 ? mine - width : u, 0},
                                      {IMBREX_IN, mine, 0},
                                      {IMBREX_IN, mine + width, 0},
                                      {IMBREX_OUT, v + 1 + block * width, 0},
                                      {IMBREX_OUT, &changes[block], 0}};
    imbrex_task_spec spec = IMBREX_TASK("relax", relax);
    spec.argument = &block;
    spec.argument_bytes = sizeof block;
    spec.access_count = 5;
    spec.accesses = accesses;
    if (imbrex_spawn(&spec, NULL) != IMBREX_SUCCESS) return 1;
  }
  const imbrex_access reads[] = {{IMBREX_IN, &changes[0], 0},
                                 {IMBREX_IN, &changes[1], 0},
                                 {IMBREX_IN, &changes[2], 0},
                                 {IMBREX_IN, &changes[3], 0}};
  imbrex_task_spec spec = IMBREX_TASK("test", test);
  spec.access_count = blocks;
  spec.accesses = reads;
  spec.decides = 1;
  return imbrex_spawn(&spec, NULL);
}

int main(void) {
  rods[0][0] = rods[1][0] = 100;
  if (imbrex_iterate(100000, 2, sweep, NULL, IMBREX_HERE) != IMBREX_SUCCESS) {
    puts(imbrex_message());
    return 1;
  }
  double error = 0; /* the heat falls along a line */
  for (int x = 0; x <= points + 1; ++x) {
    const double line = 100.0 * (points + 1 - x) / (points + 1);
    error = larger(error, distance(rods[iterations % 2][x], line));
  }
  printf("%d iterations, error %.4f\n", (int)iterations, error);
  return iterations > 0 && error < 0.01 ? 0 : 1;
}
