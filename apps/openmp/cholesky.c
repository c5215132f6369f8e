// SPDX-License-Identifier: BSD-3-Clause
// Cholesky factorisation of a matrix in tiles, spread block-cyclically over the ranks, with MPI and
// OpenMP only: each kernel, each send and each receive is a task, ordered by `depend`. Tasks
// receive by a plain MPI_Recv. After Schuchart, Tsugane, Gracia and Sato (IWOMP 2018), whose
// question it is what a thread does meanwhile.
#include <cblas.h>
#include <getopt.h>
#include <lapacke.h>
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "command_line.h"

// A function of OpenBLAS; other libraries read the number of threads from the environment.
__attribute__((weak)) void openblas_set_num_threads(int count);

static int order = 1024, width = 64;  // of the matrix, of a tile
static int tiles;                     // in a row
static int rows, columns;             // of the grid of ranks

static int extent(int tile) { return tile < tiles - 1 ? width : order - width * (tiles - 1); }
static int owner(int i, int j) { return i % rows * columns + j % columns; }

// ---- the matrix --------------------------------------------------------------------------------

static double** local;  // tile (i, j) at [i * tiles + j]; null where another rank has it
static double** panel;  // received tiles of two columns by turns: (i, k) at [k % 2 * tiles + i]

// Between -1/2 and 1/2, the same for (i, j) and (j, i); a heavy diagonal makes it definite.
static double element(int i, int j) {
  uint64_t bits = ((uint64_t)(i < j ? j : i) << 32) + (uint64_t)(i < j ? i : j);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return (double)((bits ^ (bits >> 31)) >> 11) * 0x1p-53 - 0.5 + (i == j ? order : 0);
}

static void make_matrix(void) {
  local = allocate((size_t)tiles * tiles, sizeof(double*));
  panel = allocate(2 * (size_t)tiles, sizeof(double*));
  for (int i = 0; i < 2 * tiles; ++i) panel[i] = allocate((size_t)width * width, sizeof(double));
  for (int i = 0; i < tiles; ++i) {
    for (int j = 0; j <= i; ++j) {
      if (owner(i, j) != rank) continue;
      double* const tile = local[i * tiles + j] = allocate((size_t)width * width, sizeof(double));
      for (int y = 0; y < extent(j); ++y) {
        for (int x = 0; x < extent(i); ++x) {
          tile[y * width + x] = element(i * width + x, j * width + y);
        }
      }
    }
  }
}

static void free_matrix(void) {
  for (int i = 0; i < tiles * tiles; ++i) free(local[i]);
  for (int i = 0; i < 2 * tiles; ++i) free(panel[i]);
  free(local);
  free(panel);
}

// ---- messages ----------------------------------------------------------------------------------

// Says whether a rank computes with tile (i, k) of the factor: it has a tile of column k below (k,
// k), or of row i or column i right of column k.
static bool needs(int who, int i, int k) {
  if (i == k) {
    for (int below = k + 1; below < tiles; ++below) {
      if (owner(below, k) == who) return true;
    }
    return false;
  }
  for (int j = k + 1; j <= i; ++j) {
    if (owner(i, j) == who) return true;
  }
  for (int below = i; below < tiles; ++below) {
    if (owner(below, i) == who) return true;
  }
  return false;
}

static double* factor_tile(int i, int k) {
  return owner(i, k) == rank ? local[i * tiles + k] : panel[k % 2 * tiles + i];
}

static void send_tile(int i, int k) {
  double* const tile = local[i * tiles + k];
  for (int to = 0; to < ranks; ++to) {
    if (to == rank || !needs(to, i, k)) continue;
#pragma omp task depend(in : tile[0]) firstprivate(tile, to, i, k)
    MPI_Send(tile, width * width, MPI_DOUBLE, to, k * tiles + i, MPI_COMM_WORLD);
  }
}

static void receive_tile(int i, int k) {
  double* const tile = factor_tile(i, k);
  const int from = owner(i, k);
  if (from == rank || !needs(rank, i, k)) return;
#pragma omp task depend(out : tile[0]) firstprivate(tile, from, i, k)
  MPI_Recv(tile, width * width, MPI_DOUBLE, from, k * tiles + i, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

// ---- the factorisation -------------------------------------------------------------------------

static void factor_diagonal(int k, int* failed) {
  double* const tile = local[k * tiles + k];
#pragma omp task depend(inout : tile[0]) firstprivate(tile, k, failed)
  if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', extent(k), tile, width) != 0) {
#pragma omp atomic write
    *failed = 1;
  }
}

static void solve_below(int i, int k) {
  double* const diagonal = factor_tile(k, k);
  double* const tile = local[i * tiles + k];
#pragma omp task depend(in : diagonal[0]) depend(inout : tile[0]) firstprivate(diagonal, tile, i, k)
  cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, extent(i), extent(k),
              1.0, diagonal, width, tile, width);
}

static void update(int i, int j, int k) {
  double* const left = factor_tile(i, k);
  double* const right = factor_tile(j, k);
  double* const tile = local[i * tiles + j];
  if (i == j) {
#pragma omp task depend(in : left[0]) depend(inout : tile[0]) firstprivate(left, tile, i, k)
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, extent(i), extent(k), -1.0, left, width,
                1.0, tile, width);
  } else {
#pragma omp task depend(in : left[0], right[0]) depend(inout : tile[0]) \
    firstprivate(left, right, tile, i, j, k)
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, extent(i), extent(j), extent(k), -1.0,
                left, width, right, width, 1.0, tile, width);
  }
}

// Creates all tasks of one rank. The receives of a column come first, so that they can be in
// flight.
static void create_tasks(int* failed) {
  for (int k = 0; k < tiles; ++k) {
    for (int i = k; i < tiles; ++i) receive_tile(i, k);
    if (owner(k, k) == rank) {
      factor_diagonal(k, failed);
      send_tile(k, k);
    }
    for (int i = k + 1; i < tiles; ++i) {
      if (owner(i, k) != rank) continue;
      solve_below(i, k);
      send_tile(i, k);
    }
    for (int j = k + 1; j < tiles; ++j) {
      for (int i = j; i < tiles; ++i) {
        if (owner(i, j) == rank) update(i, j, k);
      }
    }
  }
}

// ---- the check ---------------------------------------------------------------------------------

// y += L x or, transposed, y += L' x, for the tiles of this rank.
static void multiply(const double* x, double* y, bool transposed) {
  for (int i = 0; i < tiles; ++i) {
    for (int j = 0; j <= i; ++j) {
      if (owner(i, j) != rank) continue;
      const double* const tile = local[i * tiles + j];
      for (int c = 0; c < extent(j); ++c) {
        for (int r = i == j ? c : 0; r < extent(i); ++r) {
          const int row = i * width + r, column = j * width + c;
          if (transposed) {
            y[column] += tile[c * width + r] * x[row];
          } else {
            y[row] += tile[c * width + r] * x[column];
          }
        }
      }
    }
  }
}

// |L L' x - A x| / (|A| |x| n eps), in the largest norm, for one x.
static double residual(void) {
  double* const x = allocate(4 * (size_t)order, sizeof(double));
  double *const middle = x + order, *const product = x + 2 * order, *const partial = x + 3 * order;
  for (int i = 0; i < order; ++i) x[i] = element(i, order + i);
  multiply(x, partial, true);
  MPI_Allreduce(partial, middle, order, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < order; ++i) partial[i] = 0;
  multiply(middle, partial, false);
  MPI_Allreduce(partial, product, order, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  double found[3] = {0, 0, 0};  // difference, row of A, element of x
  for (int i = rank; i < order; i += ranks) {
    double sum = 0, weight = 0;
    for (int j = 0; j < order; ++j) {
      sum += element(i, j) * x[j];
      weight += fabs(element(i, j));
    }
    // The comparison is also true for a difference that is no number.
    if (!(fabs(product[i] - sum) <= found[0])) found[0] = fabs(product[i] - sum);
    found[1] = fmax(found[1], weight);
    found[2] = fmax(found[2], fabs(x[i]));
  }
  if (!(found[0] < INFINITY)) found[0] = INFINITY;
  double most[3];
  MPI_Allreduce(found, most, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  free(x);
  return most[0] / (most[1] * most[2] * order * 0x1p-53);
}

// ---- the program -------------------------------------------------------------------------------

const char program[] = "cholesky";
const char usage[] =
    "cholesky: factors a symmetric matrix with MPI and OpenMP tasks, and checks the factor\n"
    "  -n N   rows of the matrix (1024)\n"
    "  -b N   rows of a tile (64)\n"
    "  -p N   rows of the grid of ranks, a divisor of their number (the largest up to its root)\n"
    "  -h     this text\n";

static void read_options(int argc, char** argv) {
  opterr = 0;
  for (int letter; (letter = getopt(argc, argv, "n:b:p:h")) != -1;) {
    switch (letter) {
      case 'n': order = whole_number(optarg); break;
      case 'b': width = whole_number(optarg); break;
      case 'p': rows = whole_number(optarg); break;
      case 'h': leave(0, NULL); break;
      default: leave(2, "an option is unknown, or lacks its value");
    }
  }
  if (optind < argc) leave(2, "there is a word too many");
  if (rows == 0) {
    for (int divisor = 1; divisor * divisor <= ranks; ++divisor) {
      if (ranks % divisor == 0) rows = divisor;
    }
  }
  if (ranks % rows != 0) leave(2, "-p must divide the number of ranks");
  columns = ranks / rows;
  if (width > order) width = order;
  tiles = (order + width - 1) / width;
  int *largest_tag, found;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &found);
  if ((int64_t)tiles * tiles > *largest_tag) {
    leave(2, "there are more tiles than MPI has tags: take larger ones (-b)");
  }
}

int main(int argc, char** argv) {
  int failed = 0, threads = 0;
  start_mpi(&argc, &argv);
  read_options(argc, argv);
  if (openblas_set_num_threads != NULL) openblas_set_num_threads(1);
  make_matrix();
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
#pragma omp parallel
#pragma omp single
  {
    threads = omp_get_num_threads();
    create_tasks(&failed);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  const double error = residual();
  const bool right = failed == 0 && error < 10;
  if (rank == 0) {
    printf("cholesky: n %d, tiles of %d, %d x %d ranks, %d threads each: %.4f s, %.2f Gflop/s, "
           "residual %.3g: %s\n", order, width, rows, columns, threads, seconds,
           (double)order * order * order / 3e9 / seconds, error, right ? "right" : "WRONG");
  }
  free_matrix();
  MPI_Finalize();
  return right ? 0 : 1;
}
