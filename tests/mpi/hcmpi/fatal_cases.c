/* SPDX-License-Identifier: BSD-3-Clause */
/* Misuse where errors are fatal, as they are by default: the program ends with a message. The case
   is named by the argument. */
#include "check.h"

static void put_twice(void* argument) {
  (void)argument;
  DDF_t* ddf = DDF_CREATE();
  DDF_PUT(ddf, NULL);
  DDF_PUT(ddf, NULL);
}
static void get_early(void* argument) {
  (void)argument;
  (void)DDF_GET(DDF_CREATE());
}
static void leave_open(void* argument) {
  (void)argument;
  hc_finish_begin();
}
static void wait_for_null(void* argument) {
  (void)argument;
  HCMPI_Wait(NULL, HCMPI_STATUS_IGNORE);
}

static void nothing(void* argument) { (void)argument; }
static void never_put(void* argument) {
  (void)argument;
  DDF_t* ddf = DDF_CREATE();
  hc_clauses awaits = {.name = "waits for ever", .await = &ddf, .await_count = 1};
  hc_async(nothing, NULL, 0, &awaits);
}

#define DDF_HOME(guid) 0
#define DDF_SIZE(guid) sizeof(int)
static void put_handle_twice(void* argument) {
  (void)argument;
  int rank, value = 7;
  HCMPI_Comm_rank(HCMPI_COMM_WORLD, &rank);
  for (int i = 0; i < 2 && rank == 0; i++) DDF_PUT(DDF_HANDLE(33), &value);
}
static void never_put_handle(void* argument) {
  (void)argument;
  DDF_t* ddf = DDF_HANDLE(33);
  hc_clauses awaits = {.name = "waits for ever", .await = &ddf, .await_count = 1};
  hc_async(nothing, NULL, 0, &awaits);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*body)(void*);
  } cases[] = {{"put_twice", put_twice},
               {"get_early", get_early},
               {"leave_open", leave_open},
               {"never_put", never_put},
               {"never_put_handle", never_put_handle},
               {"put_handle_twice", put_handle_twice},
               {"wait_for_null", wait_for_null}};
  const char* name = argc > 1 ? argv[1] : "";
  if (strcmp(name, "too_early") == 0) HCMPI_Barrier(HCMPI_COMM_WORLD);
  HCMPI_Init(&argc, &argv);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(name, cases[i].name) != 0) continue;
    hc_finish_begin();
    hc_clauses clauses = {.name = "wrong"};
    hc_async(cases[i].body, NULL, 0, &clauses);
    hc_finish_end();
  }
  HCMPI_Finalize();
  printf("ran to its end\n");
  return 0;
}
