/* SPDX-License-Identifier: BSD-3-Clause */
/* The first program in C: a thousand tasks, each of which reads and writes the number. */
#include <imbrex/imbrex.h>

#include <stdio.h>
#include <stdlib.h>

/* The body of a task: 0 means success. */
static int add_one(void* number, void* result) {
  (void)result;
  ++*(int*)number;
  return 0;
}

static void check(int code) {
  if (code == IMBREX_SUCCESS) return;
  fprintf(stderr, "%s\n", imbrex_message());
  exit(1);
}

int main(void) {
  int number = 0;
  const imbrex_access access = {IMBREX_INOUT, &number, 0};
  imbrex_task_spec spec = IMBREX_TASK("add", add_one);
  spec.argument = &number;
  spec.access_count = 1;
  spec.accesses = &access;
  imbrex_finish_t finish;
  check(imbrex_finish_begin(&finish, IMBREX_HERE));
  for (int i = 0; i < 1000; ++i) check(imbrex_spawn(&spec, NULL));
  check(imbrex_finish_end(&finish)); /* waits for the tasks */
  printf("the number is %d\n", number);
  return number == 1000 ? 0 : 1;
}
