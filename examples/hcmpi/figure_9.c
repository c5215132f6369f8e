/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 9 of Chatterjee et al., IPDPS 2013: the best local alignment of two sequences (Smith and
   Waterman), a task for each element of the matrix, which starts when the three it needs are there,
   on whatever rank they were computed, without a message that the program would send.
   The paper's i * H + j names two elements alike if H < W; here the guid is i * W + j. */
#include <stdio.h>
#include <stdlib.h>

#include "imbrex/compat/hcmpi.h"

enum { height = 41, width = 61 }; /* with a row and a column of zeros before the first letters */

typedef struct {
  int score; /* of the best alignment that ends here */
  int best;  /* of the best that ends here, or above and left of it */
} Elem;

static int NPROC, rank;
#define DDF_HOME(guid) ((int)((guid) % NPROC))
#define DDF_SIZE(guid) (sizeof(Elem))

static const char* const letters = "ACGT";
static char one[height], other[width];

static DDF_t*** allocMatrix(int H, int W) {
  DDF_t*** matrix = hc_malloc((size_t)H * sizeof(DDF_t**));
  for (int i = 0; i < H; ++i) {
    matrix[i] = hc_malloc((size_t)W * sizeof(DDF_t*));
    for (int j = 0; j < W; ++j) matrix[i][j] = DDF_HANDLE(i * W + j);
  }
  return matrix;
}

static int isHome(int i, int j) { return DDF_HOME(i * width + j) == rank; }

static void doInitialPuts(DDF_t*** matrix2D) {
  Elem zero = {0, 0};
  for (int i = 0; i < height; ++i) {
    for (int j = 0; j < width; ++j) {
      if ((i == 0 || j == 0) && isHome(i, j)) DDF_PUT(matrix2D[i][j], &zero);
    }
  }
}

static int max(int a, int b) { return a > b ? a : b; }

static Elem compute(int i, int j, const Elem* above, const Elem* left, const Elem* uLeft) {
  Elem elem;
  elem.score = uLeft->score + (one[i] == other[j] ? 2 : -1);
  elem.score = max(max(elem.score, 0), max(above->score, left->score) - 1);
  elem.best = max(elem.score, max(uLeft->best, max(above->best, left->best)));
  return elem;
}

typedef struct {
  int i, j;
  DDF_t *curr, *above, *left, *uLeft;
} Task;

static void element(void* argument) {
  const Task* task = argument;
  Elem currElem = compute(task->i, task->j, DDF_GET(task->above), DDF_GET(task->left),
                          DDF_GET(task->uLeft));
  DDF_PUT(task->curr, &currElem); /* copies it */
}

static int alone(void) { /* the same by one loop */
  static Elem all[height][width];
  for (int i = 1; i < height; ++i) {
    for (int j = 1; j < width; ++j) {
      all[i][j] = compute(i, j, &all[i - 1][j], &all[i][j - 1], &all[i - 1][j - 1]);
    }
  }
  return all[height - 1][width - 1].best;
}

static int expected, wrong;

static void check(void* argument) {
  DDF_t* last = *(DDF_t**)argument;
  int best = ((Elem*)DDF_GET(last))->best;
  printf("rank %d: the best local alignment has the score %d\n", rank, best);
  if (best != expected) wrong = 1;
}

int main(int argc, char** argv) {
  HCMPI_Init(&argc, &argv);
  HCMPI_COMM_SIZE(HCMPI_COMM_WORLD, &NPROC);
  HCMPI_COMM_RANK(HCMPI_COMM_WORLD, &rank);
  srand(1); /* the same sequences on all ranks */
  for (int i = 1; i < height; ++i) one[i] = letters[rand() / 7 % 4];
  for (int j = 1; j < width; ++j) other[j] = letters[rand() / 7 % 4];
  expected = alone();

  DDF_t*** matrix2D = allocMatrix(height, width);
  doInitialPuts(matrix2D);
  hc_finish_begin();
  for (int i = 1; i < height; ++i) {
    for (int j = 1; j < width; ++j) {
      if (!isHome(i, j)) continue;
      Task task = {i, j, matrix2D[i][j], matrix2D[i - 1][j], matrix2D[i][j - 1],
                   matrix2D[i - 1][j - 1]};
      DDF_t* needs[] = {task.above, task.left, task.uLeft};
      hc_clauses await = {.await = needs, .await_count = 3};
      hc_async(element, &task, sizeof task, &await);
    }
  }
  DDF_t* last = matrix2D[height - 1][width - 1];
  hc_clauses await_last = {.await = &last, .await_count = 1};
  hc_async(check, &last, sizeof last, &await_last);
  hc_finish_end();

  for (int i = 0; i < height; ++i) {
    for (int j = 0; j < width; ++j) DDF_FREE(&matrix2D[i][j]);
    hc_free(matrix2D[i]);
  }
  hc_free(matrix2D);
  HCMPI_Finalize();
  return wrong;
}
