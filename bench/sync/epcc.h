/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurement of the EPCC microbenchmarks (Bull, EWOMP 1999): a loop of many constructs with a
   delay between them, against the same loop of delays alone; several times, of which the first does
   not count. For C and C++. */
#pragma once

#include <math.h>
#include <mpi.h>
#include <stdio.h>

enum { epcc_repetitions = 20, epcc_inner = 2000, epcc_delay = 100 };

static inline void delay(void) {
  volatile double sum = 0;
  for (int i = 0; i < epcc_delay; ++i) sum = sum + i;
}

/* Carries out `count` of the construct, with delays; how long that took, in seconds. */
typedef double (*epcc_run)(int count);

static double epcc_reference(int count) {
  const double begin = MPI_Wtime();
  for (int i = 0; i < count; ++i) delay();
  return MPI_Wtime() - begin;
}

/* Microseconds for one, its deviation, and how many are more than three of these off. */
static void epcc_times(epcc_run run, double* mean, double* deviation, int* outliers) {
  double times[epcc_repetitions], sum = 0, squares = 0;
  run(epcc_inner);
  for (int k = 0; k < epcc_repetitions; ++k) {
    times[k] = run(epcc_inner) * 1e6 / (double)epcc_inner;
    sum += times[k];
  }
  *mean = sum / (double)epcc_repetitions;
  for (int k = 0; k < epcc_repetitions; ++k) squares += (times[k] - *mean) * (times[k] - *mean);
  *deviation = sqrt(squares / (epcc_repetitions - 1));
  *outliers = 0;
  for (int k = 0; k < epcc_repetitions; ++k) *outliers += fabs(times[k] - *mean) > 3 * *deviation;
}

/* Prints, on rank 0, what one costs beyond its delay. */
static void epcc_measure(const char* benchmark, const char* system, int workers, epcc_run run) {
  double reference, reference_deviation, mean, deviation;
  int rank = 0, reference_outliers, outliers;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  epcc_times(epcc_reference, &reference, &reference_deviation, &reference_outliers);
  epcc_times(run, &mean, &deviation, &outliers);
  if (rank != 0) return;
  printf("{\"benchmark\": \"%s\", \"system\": \"%s\", \"workers\": %d, \"us\": %.4f, "
         "\"plus_minus_us\": %.4f, \"outliers\": %d}\n",
         benchmark, system, workers, mean - reference, 1.96 * (deviation + reference_deviation),
         outliers);
  fflush(stdout);
}
