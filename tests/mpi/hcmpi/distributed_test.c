/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributed data-driven futures, with any number of ranks. Prints what is wrong, and ends with 1
   then. */
#include "check.h"

enum { futures = 24, longest = 40000 };

static int rank, ranks;
static int wrong_home, wrong_size; /* of one guid, on some rank */

/* The values of some are longer than a message. */
static int home_of(uint64_t guid) { return (int)(guid % (uint64_t)ranks) + wrong_home; }
static size_t size_of(uint64_t guid) { return (guid % 3 == 0 ? longest : 8) + (size_t)wrong_size; }
#define DDF_HOME(guid) home_of(guid)
#define DDF_SIZE(guid) size_of(guid)

/* Each test has guids of its own, whose first has its home on rank 0. */
static uint64_t next_guid;
static uint64_t guids(int count) {
  uint64_t first = next_guid;
  next_guid += (uint64_t)(count + 3 * ranks) / (uint64_t)(3 * ranks) * (uint64_t)(3 * ranks);
  return first;
}

static void fill(char* value, uint64_t guid) {
  for (size_t i = 0; i < size_of(guid); i++) value[i] = (char)(guid + 7 * i);
}
static void put(uint64_t guid) {
  char* value = hc_malloc(longest);
  fill(value, guid);
  CHECK(DDF_PUT(DDF_HANDLE(guid), value) == HCMPI_SUCCESS);
  memset(value, 0, longest); /* it was copied */
  hc_free(value);
}
static void check_value(uint64_t guid) {
  char* expected = hc_malloc(longest); /* a task's stack is small */
  const char* value = DDF_GET(DDF_HANDLE(guid));
  CHECK(value != NULL);
  fill(expected, guid);
  CHECK(memcmp(value, expected, size_of(guid)) == 0);
  hc_free(expected);
}

static int checked;
static void check_one(void* argument) {
  check_value(*(uint64_t*)argument);
  __atomic_add_fetch(&checked, 1, __ATOMIC_RELAXED);
}

/* ---- values ---- */

/* Awaits by each of the three clauses. */
static void await_one(uint64_t guid, int how) {
  DDF_t* ddf = DDF_HANDLE(guid);
  CHECK(ddf == DDF_HANDLE(guid)); /* one for all */
  hc_clauses clauses = {.name = "reader"};
  DDF_list_t* list = NULL;
  if (how == 0) {
    clauses.await = &ddf;
    clauses.await_count = 1;
  } else if (how == 1) {
    clauses.await_any = &ddf;
    clauses.await_any_count = 1;
  } else {
    list = DDF_LIST_CREATE();
    CHECK(DDF_LIST_ADD(ddf, list) == HCMPI_SUCCESS);
    clauses.await_list = list;
  }
  CHECK(hc_async(check_one, &guid, sizeof guid, &clauses) == HCMPI_SUCCESS);
  if (list != NULL) CHECK(DDF_LIST_FREE(&list) == HCMPI_SUCCESS);
}

/* They are put by their homes, or by the ranks beside these. */
static void test_awaits_before_and_after_the_put(int elsewhere) {
  uint64_t first = guids(futures);
  checked = 0;
  hc_finish_begin();
  for (int i = 0; i < futures; i++) await_one(first + (uint64_t)i, i % 3);
  CHECK(__atomic_load_n(&checked, __ATOMIC_RELAXED) == 0);
  HCMPI_Barrier(HCMPI_COMM_WORLD);
  for (int i = 0; i < futures; i++) {
    uint64_t guid = first + (uint64_t)i;
    if ((home_of(guid) + elsewhere) % ranks == rank) put(guid);
  }
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
  CHECK(checked == futures);

  hc_finish_begin();
  for (int i = 0; i < futures; i++) await_one(first + (uint64_t)i, (i + 1) % 3);
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
  CHECK(checked == 2 * futures);
  for (int i = 0; i < futures; i++) {
    DDF_t* ddf = DDF_HANDLE(first + (uint64_t)i);
    DDF_t* copy = ddf;
    CHECK(DDF_FREE(&ddf) == HCMPI_SUCCESS && ddf == NULL);
    REFUSED(DDF_PUT(copy, NULL), MPI_ERR_REQUEST, "DDF_PUT", "freed");
  }
  checked = 0; /* it is fetched again */
  hc_finish_begin();
  for (int i = 0; i < futures; i++) await_one(first + (uint64_t)i, i % 3);
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
  CHECK(checked == futures);
}

/* The home of it has made no handle, and waits for the others. */
static void test_a_home_without_handles(void) {
  uint64_t guid = guids(1);
  hc_finish_begin();
  if (rank == 1) put(guid);
  if (rank != 0) await_one(guid, 0);
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
  HCMPI_Barrier(HCMPI_COMM_WORLD);
  if (rank == 0) check_value(guid); /* it is here: the finish has waited for that */
}

/* ---- errors ---- */

static void test_handles(void) {
  uint64_t guid = guids(1);
  DDF_t* ddf = DDF_HANDLE(guid);
  CHECK(hc_ddf_handle(guid, ranks, 8) == NULL && said("is not one of") && said("DDF_HANDLE"));
  CHECK(hc_ddf_handle(guid, -1, 8) == NULL && said("-1"));
  CHECK(hc_ddf_handle(guid, 0, 24) == NULL && said("is 24") && said("40000"));
  if (ranks > 1) CHECK(hc_ddf_handle(guid, 1, longest) == NULL && said("is 1") && said("was 0"));
  REFUSED(HCMPI_Wait(ddf, HCMPI_STATUS_IGNORE), MPI_ERR_REQUEST, "HCMPI_Wait", "no request");
  REFUSED(DDF_PUT(ddf, NULL), MPI_ERR_ARG, "DDF_PUT", "null");
  CHECK(DDF_GET(ddf) == NULL && said("has not arrived") && said("DDF_GET"));
  HCMPI_Barrier(HCMPI_COMM_WORLD);
  if (rank == 0) put(guid);
}

static void test_second_puts(void) {
  uint64_t guid = guids(1);
  if (rank == 0) {
    static char value[longest];
    put(guid);
    REFUSED(DDF_PUT(DDF_HANDLE(guid), value), MPI_ERR_OTHER, "second put", "distributed_test.c");
  }
  HCMPI_Barrier(HCMPI_COMM_WORLD);
  if (rank == 1) {
    hc_finish_begin();
    put(guid);
    CHECK(hc_finish_end() == MPI_ERR_OTHER && said("second put") && said("rank 0"));
  }
  hc_finish_begin();
  await_one(guid, 0);
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
}

static void never(void* argument) {
  (void)argument;
  CHECK(!"the task runs");
}
static int await_in_vain(uint64_t guid) {
  DDF_t* ddf = DDF_HANDLE(guid);
  hc_clauses clauses = {.await = &ddf, .await_count = 1};
  hc_finish_begin();
  CHECK(hc_async(never, NULL, 0, &clauses) == HCMPI_SUCCESS);
  return hc_finish_end();
}

/* A reader's size is not that of the home, for values that are put before and after. */
static void test_sizes_differ(void) {
  for (uint64_t i = 0; i < 2; i++) {
    uint64_t guid = guids(2);
    guid += home_of(guid + i) == 0 ? i : 0;
    if (rank == 0) put(guid);
    if (rank == 1) {
      char there[20], here[20];
      snprintf(there, sizeof there, "%d bytes", (int)size_of(guid));
      wrong_size = 16;
      snprintf(here, sizeof here, "expects %d", (int)size_of(guid));
      CHECK(await_in_vain(guid) == MPI_ERR_OTHER && said(there) && said(here));
      wrong_size = 0;
    }
  }
}
/* A rank that puts elsewhere gives another size than the home, which knows its own before or later.
   */
static void test_sizes_of_puts_differ(int later) {
  uint64_t guid = guids(1);
  if (rank == 0 && !later) CHECK(DDF_HANDLE(guid) != NULL);
  HCMPI_Barrier(HCMPI_COMM_WORLD);
  if (rank == 1) {
    static char value[longest];
    hc_finish_begin();
    CHECK(DDF_PUT(hc_ddf_handle(guid, 0, 24), value) == HCMPI_SUCCESS);
    const int code = hc_finish_end();
    if (later) {
      CHECK(code == HCMPI_SUCCESS);
    } else {
      CHECK(code == MPI_ERR_OTHER && said("of 24 bytes") && said("40000 on rank 0"));
    }
  }
  HCMPI_Barrier(HCMPI_COMM_WORLD);
  if (rank == 0 && later) {
    CHECK(DDF_GET(DDF_HANDLE(guid)) == NULL && said("has 24 bytes") && said("40000"));
  }
}
/* The rank that others take for the home thinks of another. */
static void test_homes_differ(int later) {
  uint64_t guid = guids(1);
  if (rank == 0 && !later) CHECK(hc_ddf_handle(guid, 1, longest) != NULL);
  HCMPI_Barrier(HCMPI_COMM_WORLD);
  if (rank == 1 && later) {
    hc_finish_begin();
    put(guid);
    CHECK(hc_finish_end() == HCMPI_SUCCESS);
  } else if (rank == 1) {
    CHECK(await_in_vain(guid) == MPI_ERR_OTHER && said("the home") && said("rank 0") &&
          said("rank 1"));
  }
  HCMPI_Barrier(HCMPI_COMM_WORLD);
  if (rank == 0 && later) {
    CHECK(hc_ddf_handle(guid, 1, longest) == NULL && said("is 1 on rank 0") && said("was 0"));
  }
}

int main(int argc, char** argv) {
  hc_set_errors(HC_ERRORS_RETURN);
  HCMPI_Init(&argc, &argv);
  HCMPI_Comm_rank(HCMPI_COMM_WORLD, &rank);
  HCMPI_Comm_size(HCMPI_COMM_WORLD, &ranks);
  if (ranks > 1) test_a_home_without_handles();
  test_awaits_before_and_after_the_put(0);
  test_awaits_before_and_after_the_put(1);
  test_handles();
  test_second_puts();
  if (ranks > 1) {
    test_sizes_differ();
    test_sizes_of_puts_differ(0);
    test_sizes_of_puts_differ(1);
    test_homes_differ(0);
    test_homes_differ(1);
  }
  uint64_t guid = guids(1);
  DDF_t* ddf = DDF_HANDLE(guid);
  if (rank == 0) put(guid);
  hc_finish_begin();
  await_one(guid, 0);
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
  HCMPI_Finalize();
  CHECK(DDF_GET(ddf) != NULL); /* what is here stays */
  REFUSED(DDF_PUT(ddf, &rank), MPI_ERR_OTHER, "DDF_PUT", "HCMPI_Finalize");
  return 0;
}
