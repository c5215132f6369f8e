/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of this folder have in common: their start, and how they refuse. Included once
   by each, which defines the two texts. */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

extern const char program[];  /* its name */
extern const char usage[];

static int rank, ranks;

/* Ends the program on all ranks, which have the same words. Rank 0 says why. */
static void leave(int code, const char* why) {
  if (rank == 0 && why != NULL) fprintf(stderr, "%s: %s\n%s", program, why, usage);
  if (rank == 0 && why == NULL) fputs(usage, stdout);
  MPI_Finalize();
  exit(code);
}

static int whole_number(const char* text) {
  char* end;
  const long value = strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < 1 || value > 1000000) {
    leave(2, "a number must be between 1 and 1000000");
  }
  return (int)value;
}

static void* allocate(size_t count, size_t bytes) {
  void* const memory = calloc(count, bytes);
  if (memory == NULL) {
    fprintf(stderr, "%s: rank %d: no memory for %zu bytes\n", program, rank, count * bytes);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  return memory;
}

static void start_mpi(int* argc, char*** argv) {
  int provided;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (provided != MPI_THREAD_MULTIPLE) leave(2, "this MPI has no MPI_THREAD_MULTIPLE");
}

#endif
