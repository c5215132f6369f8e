// SPDX-License-Identifier: BSD-3-Clause
// The heat equation on a square, by Gauss-Seidel sweeps, with MPI and OpenMP only. Each rank has a
// band of rows in blocks; a block of a sweep is a task, after its neighbours above and to the left
// in this sweep and those below and to the right in the last (a wavefront). The rows at the edges
// of a band are sent and received in tasks, by plain MPI_Send and MPI_Recv. No barrier parts the
// sweeps. The result must equal, to the last bit, that of sequential sweeps.
#include <getopt.h>
#include <mpi.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"

static int side = 512, width = 64, sweeps = 20;  // inner points, points of a block's side
static bool check = true;

static int first_row, band;   // inner rows of this rank: which, how many
static int down, across;      // blocks of this rank
static size_t pitch;          // points of a row, both borders included
static double* field;         // rows first_row - 1 to first_row + band: 0 to band + 1 here
static double* halo;          // received rows: two sweeps, above and below
static char* above_marks;     // what `depend` names: one for each block of a received row
static char* below_marks;
static char* block_marks;

static int smaller(int a, int b) { return a < b ? a : b; }

// What the border of the whole square has, and nothing inside.
static double initial(int row, int column) {
  if (row == 0) return 1.0 + 0.001 * column;
  if (column == 0) return 0.5 - 0.002 * row;
  return row == side + 1 || column == side + 1 ? 0.25 : 0.0;
}

// Where the received row of a sweep is: from above, or from below.
static double* halo_row(int sweep, bool above) {
  return halo + ((size_t)(sweep % 2) * 2 + (above ? 0 : 1)) * pitch;
}

// One sweep over columns `first` to `last` of a row.
static void relax(double* row, const double* above, const double* below, int first, int last) {
  for (int x = first; x <= last; ++x) {
    row[x] = 0.25 * (above[x] + row[x - 1] + row[x + 1] + below[x]);
  }
}

// ---- the tasks of one sweep --------------------------------------------------------------------

static void relax_block(int i, int j, int sweep) {
  const int first = j * width + 1, last = smaller(first + width - 1, side);
  const int top = i * width + 1, bottom = smaller(top + width - 1, band);
  for (int y = top; y <= bottom; ++y) {
    double* const row = field + (size_t)y * pitch;
    const bool from_above = y == 1 && rank > 0, from_below = y == band && rank < ranks - 1;
    relax(row, from_above ? halo_row(sweep, true) : row - pitch,
          from_below ? halo_row(sweep, false) : row + pitch, first, last);
  }
}

enum { to_above = 0, to_below = 1 };

// Receives of one sweep and of the next may be open together; that of the next but one follows.
static int tag_of(int sweep, int direction, int j) {
  return (sweep % 2 * 2 + direction) * across + j;
}

// A block's part of a row at the edge, to or from the rank above or below.
static void send_part(const double* row, int j, int peer, int tag) {
  const int first = j * width + 1, count = smaller(width, side - first + 1);
  MPI_Send(row + first, count, MPI_DOUBLE, peer, tag, MPI_COMM_WORLD);
}
static void receive_part(double* row, int j, int peer, int tag) {
  const int first = j * width + 1, count = smaller(width, side - first + 1);
  MPI_Recv(row + first, count, MPI_DOUBLE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void create_receives(int sweep) {
  for (int j = 0; j < across; ++j) {
    const int mark = sweep % 2 * across + j;
    if (rank > 0) {
#pragma omp task depend(inout : above_marks[mark]) firstprivate(j, sweep)
      receive_part(halo_row(sweep, true), j, rank - 1, tag_of(sweep, to_below, j));
    }
    if (rank < ranks - 1) {
#pragma omp task depend(inout : below_marks[mark]) firstprivate(j, sweep)
      receive_part(halo_row(sweep, false), j, rank + 1, tag_of(sweep, to_above, j));
    }
  }
}

// The first row as the last sweep left it, upwards; the last row of this sweep, downwards.
static void create_sends(int sweep, bool upwards) {
  for (int j = 0; j < across; ++j) {
    const int block = (upwards ? 1 : down) * (across + 2) + j + 1;
    double* const row = field + (upwards ? 1 : (size_t)band) * pitch;
    const int peer = upwards ? rank - 1 : rank + 1;
    const int tag = tag_of(sweep, upwards ? to_above : to_below, j);
#pragma omp task depend(in : block_marks[block]) firstprivate(row, j, peer, tag)
    send_part(row, j, peer, tag);
  }
}

static void create_blocks(int sweep) {
  for (int i = 0; i < down; ++i) {
    for (int j = 0; j < across; ++j) {
      // Marks beside the band's blocks stand for nothing, those above and below for received rows.
      const int block = (i + 1) * (across + 2) + j + 1;
      const int received = sweep % 2 * across + j;
      const char* const above = i == 0 ? above_marks + received : block_marks + block - across - 2;
      const char* const below =
          i == down - 1 ? below_marks + received : block_marks + block + across + 2;
#pragma omp task depend(in : block_marks[block - 1], block_marks[block + 1], *above, *below) \
    depend(inout : block_marks[block]) firstprivate(i, j, sweep)
      relax_block(i, j, sweep);
    }
  }
}

static void create_tasks(void) {
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    create_receives(sweep);
    if (rank > 0) create_sends(sweep, true);
    create_blocks(sweep);
    if (rank < ranks - 1) create_sends(sweep, false);
  }
}

// ---- set-up and check --------------------------------------------------------------------------

static void make_field(void) {
  first_row = (int)((long)side * rank / ranks) + 1;
  band = (int)((long)side * (rank + 1) / ranks) - first_row + 1;
  down = (band + width - 1) / width;
  across = (side + width - 1) / width;
  pitch = (size_t)side + 2;
  field = allocate(((size_t)band + 2) * pitch, sizeof(double));
  halo = allocate(4 * pitch, sizeof(double));
  above_marks = allocate(2 * (size_t)across, 1);
  below_marks = allocate(2 * (size_t)across, 1);
  block_marks = allocate(((size_t)down + 2) * ((size_t)across + 2), 1);
  for (int y = 0; y < band + 2; ++y) {
    for (int x = 0; x < side + 2; ++x) field[y * pitch + x] = initial(first_row - 1 + y, x);
  }
}

static void free_field(void) {
  free(field);
  free(halo);
  free(above_marks);
  free(below_marks);
  free(block_marks);
}

// Points of this rank that differ from a sequential computation of the whole.
static long differences(void) {
  double* const whole = allocate(((size_t)side + 2) * pitch, sizeof(double));
  for (int y = 0; y < side + 2; ++y) {
    for (int x = 0; x < side + 2; ++x) whole[y * pitch + x] = initial(y, x);
  }
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (int y = 1; y <= side; ++y) {
      double* const row = whole + (size_t)y * pitch;
      relax(row, row - pitch, row + pitch, 1, side);
    }
  }
  long count = 0;
  for (int y = 1; y <= band; ++y) {
    for (int x = 1; x <= side; ++x) {
      const double* const expected = &whole[(first_row - 1 + y) * pitch + x];
      count += memcmp(expected, &field[y * pitch + x], sizeof(double)) != 0;
    }
  }
  free(whole);
  return count;
}

// ---- the program -------------------------------------------------------------------------------

const char program[] = "heat";
const char usage[] =
    "heat: Gauss-Seidel sweeps over a square with MPI and OpenMP tasks, and checks the result\n"
    "  -n N   inner points of a side (512)\n"
    "  -b N   points of a block's side (64)\n"
    "  -s N   sweeps (20)\n"
    "  -u     unchecked: without the sequential sweeps on every rank\n"
    "  -h     this text\n";

static void read_options(int argc, char** argv) {
  opterr = 0;
  for (int letter; (letter = getopt(argc, argv, "n:b:s:uh")) != -1;) {
    switch (letter) {
      case 'n': side = whole_number(optarg); break;
      case 'b': width = whole_number(optarg); break;
      case 's': sweeps = whole_number(optarg); break;
      case 'u': check = false; break;
      case 'h': leave(0, NULL); break;
      default: leave(2, "an option is unknown, or lacks its value");
    }
  }
  if (optind < argc) leave(2, "there is a word too many");
  if (side < ranks) leave(2, "there must be a row for each rank (-n)");
  int *largest_tag, found;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &found);
  if (4 * ((side - 1) / width + 1) > *largest_tag) {
    leave(2, "there are more blocks than MPI has tags: take larger ones (-b)");
  }
}

int main(int argc, char** argv) {
  int threads = 0;
  start_mpi(&argc, &argv);
  read_options(argc, argv);
  make_field();
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
#pragma omp parallel
#pragma omp single
  {
    threads = omp_get_num_threads();
    create_tasks();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  long wrong = check ? differences() : 0;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("heat: %d x %d points, blocks of %d, %d sweeps, %d ranks, %d threads each: %.4f s, "
           "%.1f Mpoints/s: ", side, side, width, sweeps, ranks, threads, seconds,
           1e-6 * side * side * sweeps / seconds);
    if (!check) {
      printf("unchecked\n");
    } else if (wrong == 0) {
      printf("right\n");
    } else {
      printf("WRONG in %ld points\n", wrong);
    }
  }
  free_field();
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
