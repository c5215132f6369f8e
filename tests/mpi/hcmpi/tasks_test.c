/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks, finish and data-driven futures of hcmpi.h, without MPI. Prints what is wrong, and ends
   with 1 then. */
#define HCMPI_SHORT_NAMES
#include "check.h"

static int ran;
static void count_one(void* argument) {
  (void)argument;
  __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

/* ---- arguments are copied, of any size ---- */

typedef struct {
  int* total;
  int values[1000];
} Large;
static void add_large(void* argument) {
  const Large* large = argument;
  int mine = 0;
  for (int i = 0; i < 1000; i++) mine += large->values[i];
  __atomic_fetch_add(large->total, mine, __ATOMIC_RELAXED);
}
static void add_small(void* argument) {
  int* const* total = argument;
  __atomic_fetch_add(*total, 1, __ATOMIC_RELAXED);
}
static void add_given(void* argument) { __atomic_fetch_add((int*)argument, 1, __ATOMIC_RELAXED); }

static void test_arguments(void) {
  int total = 0, *to = &total;
  Large large = {.total = &total};
  finish {
    for (int i = 0; i < 10; i++) {
      for (int j = 0; j < 1000; j++) large.values[j] = i;
      hc_async(add_large, &large, sizeof large, NULL);
      hc_async(add_small, &to, sizeof to, NULL);
      hc_async(add_given, &total, 0, NULL);
    }
  }
  CHECK(total == 45 * 1000 + 20);
}

/* ---- finish is transitive, and nests ---- */

static void spawn_deeper(void* argument) {
  int depth = *(const int*)argument - 1;
  count_one(NULL);
  for (int i = 0; depth > 0 && i < 2; i++) hc_async(spawn_deeper, &depth, sizeof depth, NULL);
}
static void test_finish(void) {
  ran = 0;
  int depth = 10;
  finish { hc_async(spawn_deeper, &depth, sizeof depth, NULL); }
  CHECK(ran == (1 << 10) - 1);
  ran = 0;
  hc_finish_begin();
  hc_finish_begin();
  hc_async(count_one, NULL, 0, NULL);
  CHECK(hc_finish_end() == HCMPI_SUCCESS && ran == 1);
  CHECK(hc_finish(spawn_deeper, &depth) == HCMPI_SUCCESS && ran == 1 + (1 << 10) - 1);
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
}

/* ---- data-driven futures ---- */

static DDF_t* chain[1001];
static void put_next(void* argument) {
  int i = *(const int*)argument;
  CHECK(DDF_GET(chain[i]) == &chain[i]);
  DDF_PUT(chain[i + 1], &chain[i + 1]);
}
static void test_ddf(void) {
  for (int i = 0; i <= 1000; i++) chain[i] = DDF_CREATE();
  finish {
    for (int i = 999; i >= 0; i--) {
      hc_clauses one = {.await = &chain[i], .await_count = 1};
      hc_async(put_next, &i, sizeof i, &one);
    }
    DDF_PUT(chain[0], &chain[0]);
  }
  CHECK(DDF_GET(chain[1000]) == &chain[1000]);
  for (int i = 0; i <= 1000; i++) CHECK(DDF_FREE(&chain[i]) == HCMPI_SUCCESS);
}

static void test_await_any_releases_once(void) {
  DDF_t* both[2] = {DDF_CREATE(), DDF_CREATE()};
  ran = 0;
  finish {
    hc_clauses any = {.await_any = both, .await_any_count = 2};
    hc_async(count_one, NULL, 0, &any);
    DDF_PUT(both[1], NULL);
    DDF_PUT(both[0], NULL);
  }
  CHECK(ran == 1);
  DDF_FREE(&both[0]);
  DDF_FREE(&both[1]);
}

/* No task can put it any more: a task that awaits it fails. */
static void test_a_future_that_is_freed(void) {
  DDF_t* ddf = DDF_CREATE();
  ran = 0;
  hc_finish_begin();
  hc_clauses clauses = {.await = &ddf, .await_count = 1};
  hc_async(count_one, NULL, 0, &clauses);
  CHECK(DDF_FREE(&ddf) == HCMPI_SUCCESS && ddf == NULL);
  CHECK(hc_finish_end() == MPI_ERR_OTHER && ran == 0 && said("tasks_test.c"));
}

/* ---- places ---- */

static int wrong_places;
static void look_where(void* argument) {
  place_t* place = *(place_t**)argument;
  if (hc_get_current_place() != place) wrong_places++;
  if (hc_get_parent_place() != hc_get_place_parent(place)) wrong_places++;
}
static void test_places(void) {
  CHECK(hc_get_place_number(hc_get_current_place()) == -1);
  CHECK(hc_get_parent_place() == hc_get_current_place()); /* all workers: nothing is around */
  for (int i = 0; i < hc_num_places(); i++) {
    place_t* place = hc_get_place(i);
    CHECK(hc_get_place_number(place) == i);
    place_t* outermost = place;
    while (hc_get_place_number(outermost) != -1) outermost = hc_get_place_parent(outermost);
    hc_clauses there = {.at = place};
    finish { hc_async(look_where, &place, sizeof place, &there); }
  }
  CHECK(wrong_places == 0);
}

/* ---- misuse ---- */

static void leave_open(void* argument) {
  (void)argument;
  hc_finish_begin();
  hc_async(count_one, NULL, 0, NULL);
}
static void end_too_often(void* argument) { *(int*)argument = hc_finish_end(); }

static void test_misuse_of_futures(void) {
  DDF_t* ddf = DDF_CREATE();
  CHECK(DDF_GET(ddf) == NULL && said("before a value was put") && said("tasks_test.c"));
  int value = 0;
  CHECK(DDF_PUT(ddf, &value) == HCMPI_SUCCESS);
  REFUSED(DDF_PUT(ddf, NULL), MPI_ERR_OTHER, "second put", "tasks_test.c");
  CHECK(DDF_GET(ddf) == &value);
  DDF_t* copy = ddf;
  CHECK(DDF_FREE(&ddf) == HCMPI_SUCCESS);
  REFUSED(DDF_FREE(&copy), MPI_ERR_ARG, "DDF_FREE", "freed before");
  REFUSED(DDF_FREE(&ddf), MPI_ERR_ARG, "DDF_FREE", "null");
  REFUSED(DDF_FREE(NULL), MPI_ERR_ARG, "DDF_FREE", "null");
  REFUSED(DDF_PUT(copy, NULL), MPI_ERR_REQUEST, "DDF_PUT", "freed");
  REFUSED(DDF_PUT(NULL, NULL), MPI_ERR_REQUEST, "DDF_PUT", "null");
  CHECK(DDF_GET((DDF_t*)&value) == NULL && said("DDF_GET in task") && said("or no call such as"));
  DDF_list_t* list = DDF_LIST_CREATE();
  REFUSED(DDF_LIST_ADD(NULL, list), MPI_ERR_REQUEST, "DDF_LIST_ADD", "null");
  CHECK(DDF_LIST_FREE(&list) == HCMPI_SUCCESS);
  ddf = DDF_CREATE();
  REFUSED(DDF_LIST_ADD(ddf, list), MPI_ERR_ARG, "DDF_LIST_ADD", "DDF_LIST_CREATE");
  DDF_FREE(&ddf);
}

static void test_misuse_of_tasks(void) {
  REFUSED(hc_async(NULL, NULL, 0, NULL), MPI_ERR_ARG, "hc_async", "body");
  REFUSED(hc_async(count_one, NULL, 8, NULL), MPI_ERR_ARG, "hc_async", "argument");
  DDF_t* none = NULL;
  hc_clauses clauses = {.await = &none, .await_count = 1};
  REFUSED(hc_async(count_one, NULL, 0, &clauses), MPI_ERR_REQUEST, "hc_async", "null");
  hc_clauses any = {.await_any = NULL, .await_any_count = 1};
  REFUSED(hc_async(count_one, NULL, 0, &any), MPI_ERR_ARG, "hc_async", "awaited");
  hc_clauses less = {.await_count = -1};
  REFUSED(hc_async(count_one, NULL, 0, &less), MPI_ERR_ARG, "hc_async", "below 0");
  hc_clauses list = {.await_list = (DDF_list_t*)&less};
  REFUSED(hc_async(count_one, NULL, 0, &list), MPI_ERR_ARG, "hc_async", "DDF_LIST_CREATE");
  REFUSED(hc_finish_end(), MPI_ERR_OTHER, "hc_finish_end", "no finish open");
  REFUSED(hc_finish(NULL, NULL), MPI_ERR_ARG, "hc_finish", "body");
  CHECK(hc_get_place(1 << 20) == NULL && said("hc_get_place"));
  CHECK(hc_get_place_parent(NULL) == NULL && said("hc_get_place_parent"));
  CHECK(hc_get_place_parent((place_t*)(1 << 20)) == NULL && said("hc_get_place_parent"));
  REFUSED(hc_set_errors(7), MPI_ERR_ARG, "hc_set_errors", "7");
  ran = 0;
  hc_finish_begin();
  hc_async(leave_open, NULL, 0, NULL);
  CHECK(hc_finish_end() == MPI_ERR_OTHER && said("1 hc_finish_begin()") && ran == 1);
  CHECK(hc_finish(leave_open, NULL) == MPI_ERR_OTHER && said("1 hc_finish_begin()") && ran == 2);
  /* A finish of the parent is none of the task's. */
  int code = HCMPI_SUCCESS;
  hc_finish_begin();
  hc_async(end_too_often, &code, 0, NULL);
  CHECK(hc_finish_end() == HCMPI_SUCCESS && code == MPI_ERR_OTHER);
}

static void test_misuse_of_mpi_before_its_start(void) {
  int value = 0, flag = 0;
  HCMPI_Request* request = HCMPI_REQUEST_CREATE();
  REFUSED(HCMPI_Comm_rank(HCMPI_COMM_WORLD, &value), MPI_ERR_OTHER, "HCMPI_Comm_rank",
          "HCMPI_Init");
  REFUSED(HCMPI_Barrier(HCMPI_COMM_WORLD), MPI_ERR_OTHER, "HCMPI_Barrier", "HCMPI_Init");
  REFUSED(HCMPI_Send(&value, 1, HCMPI_INT, 0, 0, HCMPI_COMM_WORLD), MPI_ERR_OTHER, "HCMPI_Send",
          "HCMPI_Init");
  REFUSED(HCMPI_Irecv(&value, 1, HCMPI_INT, 0, 0, HCMPI_COMM_WORLD, NULL), MPI_ERR_OTHER,
          "HCMPI_Irecv", "HCMPI_Init");
  REFUSED(HCMPI_Wait(request, HCMPI_STATUS_IGNORE), MPI_ERR_OTHER, "HCMPI_Wait", "HCMPI_Init");
  REFUSED(HCMPI_Test(request, &flag, HCMPI_STATUS_IGNORE), MPI_ERR_OTHER, "HCMPI_Test",
          "HCMPI_Init");
  REFUSED(HCMPI_Finalize(), MPI_ERR_OTHER, "HCMPI_Finalize", "HCMPI_Init");
  CHECK(HCMPI_REQUEST_FREE(&request) == HCMPI_SUCCESS);
}

static void test_misuse_of_requests(void) {
  int value = 0, flag = 0;
  HCMPI_Request* request = HCMPI_REQUEST_CREATE();
  HCMPI_Request* freed = HCMPI_REQUEST_CREATE();
  HCMPI_Request* copy = freed;
  HCMPI_REQUEST_FREE(&freed);
  HCMPI_Status* status = NULL;
  REFUSED(HCMPI_Init(NULL, NULL), MPI_ERR_OTHER, "HCMPI_Init", "before");
  REFUSED(HCMPI_Wait(NULL, &status), MPI_ERR_REQUEST, "HCMPI_Wait", "null");
  REFUSED(HCMPI_Wait(copy, &status), MPI_ERR_REQUEST, "HCMPI_Wait", "freed");
  REFUSED(HCMPI_Waitall(1, &copy, NULL), MPI_ERR_REQUEST, "HCMPI_Waitall", "freed");
  REFUSED(HCMPI_Waitall(1, NULL, NULL), MPI_ERR_ARG, "HCMPI_Waitall", "array");
  REFUSED(HCMPI_Waitall(-1, NULL, NULL), MPI_ERR_ARG, "HCMPI_Waitall", "below 0");
  REFUSED(HCMPI_Waitany(1, &copy, NULL, NULL), MPI_ERR_ARG, "HCMPI_Waitany", "index");
  REFUSED(HCMPI_Test(request, NULL, NULL), MPI_ERR_ARG, "HCMPI_Test", "flag");
  REFUSED(HCMPI_GET_STATUS(request, &status), MPI_ERR_OTHER, "HCMPI_GET_STATUS", "not complete");
  REFUSED(HCMPI_GET_STATUS(request, NULL), MPI_ERR_ARG, "HCMPI_GET_STATUS", "place");
  REFUSED(HCMPI_Cancel(request), MPI_ERR_REQUEST, "HCMPI_Cancel", "MPI has no operation");
  REFUSED(HCMPI_Irecv(&value, 1, HCMPI_INT, 0, 0, HCMPI_COMM_SELF, NULL), MPI_ERR_OTHER,
          "HCMPI_Irecv", "innermost finish");
  HCMPI_Status own;
  status = &own;
  REFUSED(HCMPI_STATUS_FREE(&status), MPI_ERR_ARG, "HCMPI_STATUS_FREE", "no call of HCMPI");
  REFUSED(HCMPI_Get_count(NULL, HCMPI_INT, &value), MPI_ERR_ARG, "HCMPI_Get_count", "status");
  DDF_t* ddf = DDF_CREATE();
  REFUSED(HCMPI_Wait(ddf, NULL), MPI_ERR_REQUEST, "HCMPI_Wait", "no request");
  REFUSED(HCMPI_Test(ddf, &flag, NULL), MPI_ERR_REQUEST, "HCMPI_Test", "no request");
  DDF_FREE(&ddf);
  HCMPI_REQUEST_FREE(&request);
  HCMPI_Request* receive = NULL;
  CHECK(HCMPI_Irecv(&value, 1, HCMPI_INT, 0, 0, HCMPI_COMM_SELF, &receive) == HCMPI_SUCCESS);
  REFUSED(DDF_PUT(receive, NULL), MPI_ERR_REQUEST, "DDF_PUT", "request of MPI");
  CHECK(DDF_GET(receive) == NULL && said("not complete"));
  CHECK(HCMPI_Cancel(receive) == HCMPI_SUCCESS);
  CHECK(HCMPI_Wait(receive, HCMPI_STATUS_IGNORE) == HCMPI_SUCCESS);
  HCMPI_REQUEST_FREE(&receive);
}

int main(void) {
  test_arguments();
  test_finish();
  test_ddf();
  test_await_any_releases_once();
  test_a_future_that_is_freed();
  test_places();
  CHECK(hc_set_errors(HC_ERRORS_RETURN) == HCMPI_SUCCESS);
  test_misuse_of_futures();
  test_misuse_of_tasks();
  test_misuse_of_mpi_before_its_start();
  CHECK(HCMPI_Init(NULL, NULL) == HCMPI_SUCCESS);
  test_misuse_of_requests();
  CHECK(HCMPI_Finalize() == HCMPI_SUCCESS);
  REFUSED(HCMPI_Barrier(HCMPI_COMM_WORLD), MPI_ERR_OTHER, "HCMPI_Barrier", "HCMPI_Finalize");
  test_finish(); /* tasks go on without MPI */
  return 0;
}
