// SPDX-License-Identifier: BSD-3-Clause
// Measures how much communication hides behind computation in a program with MPI and OpenMP only.
// Two ranks exchange a halo in parts and compute: a task for each part exchanges it by
// MPI_Sendrecv, a dependent task reads it, and many others compute meanwhile. The program also
// times the exchange alone, the computation alone, and one after the other. Both ranks create the
// exchanges in one order, so that the program ends however few threads there are.
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "command_line.h"

static int kilobytes = 4096, parts = 8;  // of the halo
static int step_us = 500;                // a task that computes
static int compute_ms = 100;             // all of them, on one thread
static int repetitions = 5;
static bool asleep = false;              // tasks sleep as long as they would compute

static int numbers;              // of a part
static double *sent, *received;  // parts * numbers
static double* sums;             // of the parts, by the tasks that read them
static double* results;          // of the tasks that compute
static int computing;            // how many
static long rounds;              // of one

// ---- what tasks do -----------------------------------------------------------------------------

__attribute__((noinline)) static double compute(int task, long count) {
  if (asleep) usleep((useconds_t)step_us);
  if (asleep) return task;
  double value = 1.0 + task;
  for (long i = 0; i < count; ++i) value += 1.0 / value;
  return value;
}

static void exchange(int part) {
  const size_t first = (size_t)part * numbers;
  MPI_Sendrecv(sent + first, numbers, MPI_DOUBLE, 1 - rank, part, received + first, numbers,
               MPI_DOUBLE, 1 - rank, part, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void read_part(int part) {
  double sum = 0;
  for (int i = 0; i < numbers; ++i) sum += received[(size_t)part * numbers + i];
  sums[part] = sum;
}

// ---- a step ------------------------------------------------------------------------------------

static void create_exchanges(void) {
  for (int part = 0; part < parts; ++part) {
#pragma omp task depend(out : sums[part]) firstprivate(part)
    exchange(part);
#pragma omp task depend(inout : sums[part]) firstprivate(part)
    read_part(part);
  }
}

static void create_computation(void) {
  for (int task = 0; task < computing; ++task) {
#pragma omp task firstprivate(task)
    results[task] = compute(task, rounds);
  }
}

struct step {
  bool exchanges, waits, computes;
};

static const struct step steps[] = {
    {.exchanges = true, .waits = false, .computes = false},
    {.exchanges = false, .waits = false, .computes = true},
    {.exchanges = true, .waits = true, .computes = true},
    {.exchanges = true, .waits = false, .computes = true},
};
enum { communication, computation, blocking, tasks, ways };

// Seconds, the longer of both ranks.
static double run(struct step step) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
#pragma omp parallel
#pragma omp single
  {
    if (step.exchanges) create_exchanges();
    if (step.waits) {
#pragma omp taskwait
    }
    if (step.computes) create_computation();
  }
  double seconds = MPI_Wtime() - start;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

// ---- the check ---------------------------------------------------------------------------------

static double pattern(int who, int repetition, size_t index) {
  return (double)((index * 7 + (size_t)repetition * 13 + (size_t)who) % 1001);
}

static void prepare(int repetition) {
  for (size_t i = 0; i < (size_t)parts * numbers; ++i) {
    sent[i] = pattern(rank, repetition, i);
    received[i] = -1;
  }
  for (int part = 0; part < parts; ++part) sums[part] = -1;
  for (int task = 0; task < computing; ++task) results[task] = 0;
}

static long count_wrong(int repetition, struct step step) {
  long wrong = 0;
  for (int part = 0; part < parts && step.exchanges; ++part) {
    double expected = 0;
    for (int i = 0; i < numbers; ++i) {
      expected += pattern(1 - rank, repetition, (size_t)part * numbers + i);
    }
    wrong += sums[part] != expected;
  }
  for (int task = 0; task < computing && step.computes; ++task) {
    wrong += results[task] != (asleep ? task : compute(task, rounds));
  }
  return wrong;
}

// ---- the program -------------------------------------------------------------------------------

const char program[] = "overlap";
const char usage[] =
    "overlap: how much of an exchange between two ranks OpenMP tasks hide behind computation\n"
    "  -k N   kilobytes of the halo (4096)\n"
    "  -p N   parts in which it is exchanged (8)\n"
    "  -c N   milliseconds of computation of a rank, on one thread (100)\n"
    "  -t N   microseconds of a task that computes (500)\n"
    "  -r N   repetitions (5)\n"
    "  -z     tasks sleep instead: on a machine that has other work to do\n"
    "  -h     this text\n";

static void read_options(int argc, char** argv) {
  opterr = 0;
  for (int letter; (letter = getopt(argc, argv, "k:p:c:t:r:zh")) != -1;) {
    switch (letter) {
      case 'k': kilobytes = whole_number(optarg); break;
      case 'p': parts = whole_number(optarg); break;
      case 'c': compute_ms = whole_number(optarg); break;
      case 't': step_us = whole_number(optarg); break;
      case 'r': repetitions = whole_number(optarg); break;
      case 'z': asleep = true; break;
      case 'h': leave(0, NULL); break;
      default: leave(2, "an option is unknown, or lacks its value");
    }
  }
  if (optind < argc) leave(2, "there is a word too many");
  if (ranks != 2) leave(2, "there must be two ranks");
  if (parts > 128 * kilobytes) leave(2, "a part must have a number of 8 bytes (-p)");
}

// Chooses the rounds of a task, alike on both ranks, by the slower.
static void calibrate(void) {
  computing = (1000 * compute_ms + step_us - 1) / step_us;
  if (asleep) return;
  const long trial = 2000000;
  double fastest = INFINITY;
  for (int i = 0; i < 5; ++i) {
    const double start = MPI_Wtime();
    const volatile double kept = compute(i, trial);
    (void)kept;
    fastest = fmin(fastest, MPI_Wtime() - start);
  }
  MPI_Allreduce(MPI_IN_PLACE, &fastest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  rounds = (long)(1e-6 * step_us / fastest * trial) + 1;
}

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values) {
  qsort(values, (size_t)repetitions, sizeof(double), compare_doubles);
  return values[repetitions / 2];
}

int main(int argc, char** argv) {
  start_mpi(&argc, &argv);
  read_options(argc, argv);
  calibrate();
  numbers = 128 * kilobytes / parts;
  sent = allocate((size_t)parts * numbers, sizeof(double));
  received = allocate((size_t)parts * numbers, sizeof(double));
  sums = allocate((size_t)parts, sizeof(double));
  results = allocate((size_t)computing, sizeof(double));
  double* const times = allocate((size_t)ways * repetitions, sizeof(double));
  long wrong = 0;
  for (int repetition = -1; repetition < repetitions; ++repetition) {  // the first is not timed
    for (int way = 0; way < ways; ++way) {
      prepare(repetition + 1);
      const double seconds = run(steps[way]);
      if (repetition >= 0) times[way * repetitions + repetition] = seconds;
      wrong += count_wrong(repetition + 1, steps[way]);
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  double of[ways];
  for (int way = 0; way < ways; ++way) of[way] = median(times + way * repetitions);
  if (rank == 0) {
    printf("overlap: communication %.1f ms, computation %.1f ms, one after the other %.1f ms, "
           "tasks %.1f ms: %.1f %% hidden: %s\n",
           1e3 * of[communication], 1e3 * of[computation], 1e3 * of[blocking], 1e3 * of[tasks],
           100 * (of[blocking] - of[tasks]) / fmin(of[communication], of[computation]),
           wrong == 0 ? "right" : "WRONG");
  }
  free(times);
  free(results);
  free(sums);
  free(received);
  free(sent);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
