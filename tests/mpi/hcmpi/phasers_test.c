/* SPDX-License-Identifier: BSD-3-Clause */
/* Phasers and accumulators of hcmpi.h, of one process and over the ranks. Prints what is wrong, and
   ends with 1 then. */
#define HCMPI_SHORT_NAMES
#include "check.h"

enum { tasks = 6, phases = 20 };

static int rank, ranks;
static int reached[tasks];
static int singles;

/* No task is more than a phase behind. */
static void check_reached(int phase) {
  for (int i = 0; i < tasks; i++) CHECK(__atomic_load_n(&reached[i], __ATOMIC_RELAXED) >= phase);
}
static void go_through_phases(void* argument) {
  int i = *(const int*)argument;
  for (int phase = 1; phase <= phases; phase++) {
    __atomic_store_n(&reached[i], phase, __ATOMIC_RELAXED);
    next;
    check_reached(phase);
  }
}
static void go_by_halves(void* argument) {
  int i = *(const int*)argument;
  for (int phase = 1; phase <= phases; phase++) {
    __atomic_store_n(&reached[i], phase, __ATOMIC_RELAXED);
    CHECK(hc_signal(NULL) == HCMPI_SUCCESS && hc_wait(NULL) == HCMPI_SUCCESS);
    check_reached(phase);
  }
  CHECK(hc_drop(NULL) == HCMPI_SUCCESS);
}

static void barrier(phaser* ph) {
  memset(reached, 0, sizeof reached);
  hc_phased on_ph = {.on = ph, .mode = SIGNAL_WAIT_MODE};
  hc_clauses phased = {.phased = &on_ph, .phased_count = 1};
  for (int i = 0; i < tasks; i++) {
    CHECK(hc_async(i % 2 == 0 ? go_through_phases : go_by_halves, &i, sizeof i, &phased) ==
          HCMPI_SUCCESS);
  }
}
static void test_barriers(void) {
  phaser* ph[4];
  finish { barrier(ph[0] = PHASER_CREATE(SIGNAL_WAIT_MODE)); }
  finish { barrier(ph[1] = HCMPI_PHASER_CREATE(SIGNAL_WAIT_MODE)); }
  HCMPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  hc_phaser_options fuzzy = {.comm = &comm, .name = "fuzzy", .fuzzy = 1};
  finish { barrier(ph[2] = HCMPI_PHASER_CREATE_WITH(SIGNAL_WAIT_MODE, &fuzzy)); }
  hc_phaser_options leaving = {.comm = &comm, .ranks_may_leave = 1};
  finish { barrier(ph[3] = HCMPI_PHASER_CREATE_WITH(SIGNAL_WAIT_MODE, &leaving)); }
  MPI_Comm_free(&comm);
  for (int i = 0; i < 4; i++) CHECK(PHASER_FREE(&ph[i]) == HCMPI_SUCCESS && ph[i] == NULL);
}

/* ---- a pipeline: each task waits for the one before it ---- */

static int stage[tasks];
static void run_stage(void* argument) {
  int i = *(const int*)argument;
  for (int step = 1; step <= phases; step++) {
    if (i > 0) CHECK(hc_wait(NULL) == HCMPI_SUCCESS); /* in SIGNAL_ONLY_MODE that is nothing */
    if (i > 0) CHECK(__atomic_load_n(&stage[i - 1], __ATOMIC_RELAXED) >= step);
    __atomic_store_n(&stage[i], step, __ATOMIC_RELAXED);
    CHECK(hc_signal(NULL) == HCMPI_SUCCESS);
  }
}
static void test_signals_from_one_to_the_next(void) {
  phaser* between[tasks];
  finish {
    for (int i = 0; i < tasks; i++) between[i] = PHASER_CREATE(SIGNAL_WAIT_MODE);
    for (int i = 0; i < tasks; i++) {
      hc_phased both[2] = {{between[i], SIGNAL_ONLY_MODE},
                           {between[i > 0 ? i - 1 : 0], WAIT_ONLY_MODE}};
      hc_clauses clauses = {.phased = both, .phased_count = i > 0 ? 2 : 1};
      CHECK(hc_async(run_stage, &i, sizeof i, &clauses) == HCMPI_SUCCESS);
    }
  }
  for (int i = 0; i < tasks; i++) PHASER_FREE(&between[i]);
}

/* ---- single ---- */

static void count_single(void* argument) { ++*(int*)argument; }
static void go_through_singles(void* argument) {
  (void)argument;
  for (int phase = 1; phase <= phases; phase++) {
    CHECK(hc_next_single(count_single, &singles) == HCMPI_SUCCESS);
    CHECK(__atomic_load_n(&singles, __ATOMIC_RELAXED) >= phase);
  }
}
static void test_single(void) {
  phaser* ph;
  finish {
    ph = PHASER_CREATE(SINGLE_MODE);
    hc_clauses phased = {.phased_all = 1};
    for (int i = 0; i < tasks; i++) hc_async(go_through_singles, NULL, 0, &phased);
  }
  CHECK(singles == phases);
  PHASER_FREE(&ph);
}

/* ---- accumulators ---- */

typedef struct {
  phaser* ph;
  int i;
} Mine;

static void add_in_phases(void* argument) {
  const Mine* mine = argument;
  for (int phase = 1; phase <= phases; phase++) {
    int value = phase * (tasks * rank + mine->i);
    CHECK(accum_next(&value) == HCMPI_SUCCESS);
    int all = tasks * ranks;
    CHECK(*(int*)accum_get(mine->ph) == phase * (all * (all - 1) / 2));
  }
}
/* The largest value and its place: 16 bytes. */
typedef struct {
  double value;
  int where;
} Located;
static void find_largest(void* argument) {
  const Mine* mine = argument;
  Located located = {(double)(mine->i * ranks + rank), rank};
  CHECK(accum_next(&located) == HCMPI_SUCCESS);
  const Located* largest = accum_get(mine->ph);
  CHECK(largest->value == (double)(tasks * ranks - 1) && largest->where == ranks - 1);
}
/* A user's operation on a user's type. */
static void add_fields(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < 4 * *length; i++) ((double*)inout)[i] += ((double*)in)[i];
}
static void add_field(void* argument) {
  const Mine* mine = argument;
  double field[4] = {1, mine->i, rank, 0.5};
  CHECK(accum_next(field) == HCMPI_SUCCESS);
  const double* all = accum_get(mine->ph);
  CHECK(all[0] == tasks * ranks && all[1] == ranks * (tasks * (tasks - 1) / 2) &&
        all[2] == tasks * (ranks * (ranks - 1) / 2) && all[3] == 0.5 * tasks * ranks);
}

static phaser* accumulate(void (*body)(void*), HCMPI_Op op, HCMPI_Datatype type) {
  phaser* ph = HCMPI_ACCUM_CREATE(op, type);
  CHECK(ph != NULL);
  hc_clauses phased = {.phased_all = 1};
  for (int i = 0; i < tasks; i++) {
    Mine mine = {ph, i};
    CHECK(hc_async(body, &mine, sizeof mine, &phased) == HCMPI_SUCCESS);
  }
  return ph;
}
static void test_accumulators(void) {
  phaser *sums, *largest, *fields;
  finish { sums = accumulate(add_in_phases, HCMPI_SUM, HCMPI_INT); }
  int all = tasks * ranks;
  CHECK(*(int*)accum_get(sums) == phases * (all * (all - 1) / 2)); /* after the finish */
  finish { largest = accumulate(find_largest, HCMPI_MAXLOC, MPI_DOUBLE_INT); }
  HCMPI_Datatype four;
  HCMPI_Op add;
  MPI_Type_contiguous(4, MPI_DOUBLE, &four);
  MPI_Type_commit(&four);
  MPI_Op_create(add_fields, 1, &add);
  finish { fields = accumulate(add_field, add, four); }
  PHASER_FREE(&sums);
  PHASER_FREE(&largest);
  PHASER_FREE(&fields);
  MPI_Op_free(&add);
  MPI_Type_free(&four);
}

/* ---- phasers that tasks make, in no order ---- */

static void make_and_use(void* argument) {
  int key = (*(const int*)argument + rank) % tasks;
  hc_phaser_options options = {.key = &key};
  phaser* ph;
  finish {
    ph = HCMPI_PHASER_CREATE_WITH(SIGNAL_WAIT_MODE, &options);
    CHECK(ph != NULL);
    for (int phase = 0; phase < phases; phase++) next;
  }
  PHASER_FREE(&ph);
}
static void test_keys(void) {
  finish {
    for (int i = 0; i < tasks; i++) hc_async(make_and_use, &i, sizeof i, NULL);
  }
}

/* ---- misuse ---- */

/* Ranks that make phasers in different orders are told so, all of them. */
static void test_misuse_of_order(void) {
  hc_phaser_options options = {.name = rank == 0 ? "halo" : "norm"};
  CHECK(HCMPI_PHASER_CREATE_WITH(SIGNAL_WAIT_MODE, &options) == NULL);
  CHECK(said("HCMPI_PHASER_CREATE") && said("halo") && said("norm"));
}

static void misuse_in_a_task(void* argument) {
  phaser* ph = *(phaser**)argument;
  int value = 0;
  REFUSED(accum_next(&value), MPI_ERR_OTHER, "accum_next", "no accumulator");
  CHECK(accum_get(ph) == NULL && said("accum_get in task") && said("not an accumulator"));
  CHECK(hc_signal(ph) == MPI_ERR_OTHER && said("phasers_test.c")); /* not registered */
  hc_phased on_ph = {.on = ph};
  hc_clauses phased = {.phased = &on_ph, .phased_count = 1};
  CHECK(hc_async(misuse_in_a_task, NULL, 0, &phased) == MPI_ERR_OTHER);
}
static void wait_only(void* argument) {
  phaser* ph = *(phaser**)argument;
  hc_phased on_ph = {.on = ph, .mode = SIGNAL_WAIT_MODE}; /* more than this task has */
  hc_clauses phased = {.phased = &on_ph, .phased_count = 1};
  CHECK(hc_async(misuse_in_a_task, NULL, 0, &phased) == MPI_ERR_OTHER && said("phasers_test.c"));
  CHECK(hc_next_single(count_single, &singles) == MPI_ERR_OTHER);
}
static void test_misuse(void) {
  phaser* ph = NULL;
  CHECK(PHASER_CREATE(77) == NULL && said("77 is not a mode"));
  CHECK(PHASER_CREATE(HC_SAME_MODE) == NULL && said("not a mode"));
  CHECK(HCMPI_PHASER_CREATE(-1) == NULL && said("HCMPI_PHASER_CREATE"));
  CHECK(HCMPI_PHASER_CREATE(WAIT_ONLY_MODE) == NULL);
  HCMPI_Datatype large;
  MPI_Type_contiguous(65, MPI_BYTE, &large);
  CHECK(HCMPI_ACCUM_CREATE(HCMPI_SUM, large) == NULL && said("65 bytes"));
  MPI_Type_free(&large);
  CHECK(hc_next() == MPI_ERR_OTHER && said("next"));
  REFUSED(accum_next(NULL), MPI_ERR_ARG, "accum_next", "null");
  CHECK(accum_get(NULL) == NULL && said("accum_get") && said("null"));
  REFUSED(PHASER_FREE(&ph), MPI_ERR_ARG, "PHASER_FREE", "null");
  REFUSED(PHASER_FREE(NULL), MPI_ERR_ARG, "PHASER_FREE", "null");
  REFUSED(hc_next_single(NULL, NULL), MPI_ERR_ARG, "hc_next_single", "function");
  phaser* garbage = (phaser*)&ph;
  REFUSED(hc_signal(garbage), MPI_ERR_ARG, "hc_signal", "or no call such as");
  hc_clauses none = {.phased_count = 1};
  REFUSED(hc_async(wait_only, NULL, 0, &none), MPI_ERR_ARG, "hc_async", "phasers");
  finish {
    ph = PHASER_CREATE(SIGNAL_WAIT_MODE);
    CHECK(hc_wait(ph) == MPI_ERR_OTHER && said("signal")); /* it should signal first */
    CHECK(hc_async(misuse_in_a_task, &ph, sizeof ph, NULL) == HCMPI_SUCCESS);
    hc_phased on_ph = {.on = ph, .mode = WAIT_ONLY_MODE};
    hc_clauses phased = {.phased = &on_ph, .phased_count = 1};
    CHECK(hc_async(wait_only, &ph, sizeof ph, &phased) == HCMPI_SUCCESS);
  }
  phaser* copy = ph;
  CHECK(PHASER_FREE(&ph) == HCMPI_SUCCESS);
  REFUSED(PHASER_FREE(&copy), MPI_ERR_ARG, "PHASER_FREE", "freed");
}

int main(int argc, char** argv) {
  HCMPI_Init(&argc, &argv);
  HCMPI_Comm_rank(HCMPI_COMM_WORLD, &rank);
  HCMPI_Comm_size(HCMPI_COMM_WORLD, &ranks);
  test_barriers();
  test_signals_from_one_to_the_next();
  test_single();
  test_accumulators();
  test_keys();
  CHECK(hc_set_errors(HC_ERRORS_RETURN) == HCMPI_SUCCESS);
  test_misuse();
  if (ranks > 1) test_misuse_of_order();
  HCMPI_Finalize();
  return 0;
}
