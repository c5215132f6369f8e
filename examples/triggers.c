/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks from C: a task names the event for which it waits, before the program knows the event's
   cause. The runtime calls a progress function when it has nothing else to do; the function finds
   events and triggers them. The program is built a second time with -DIMBREX_SERIAL, without the
   runtime: then imbrex_noprogress() is 1. */
#include <stdio.h>
#include <time.h>

#include "imbrex/imbrex.h"

/* Something that is ready after a while, as a message would be. */
static struct timespec ready_at;

static int is_ready(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > ready_at.tv_sec ||
         (now.tv_sec == ready_at.tv_sec && now.tv_nsec >= ready_at.tv_nsec);
}

static int look(void* unused) {
  (void)unused;
  if (!is_ready()) return 1; /* call me again */
  return imbrex_trigger("ghost_done", 0) == IMBREX_SUCCESS ? 0 : -1;
}

static int core(void* sum, void* result) {
  (void)result;
  *(int*)sum += 1;
  return 0;
}

static int border(void* sum, void* result) {
  (void)result;
  *(int*)sum *= 2;
  return !is_ready();
}

int main(void) {
  int sum = 0;
  const imbrex_access accesses[] = {{IMBREX_INOUT, &sum, 0}, {IMBREX_NAMED, "ghost_done", 0}};
  for (int step = 0; step < 5; ++step) {
    imbrex_finish_t finish;
    imbrex_task_spec spec = IMBREX_TASK("core", core);
    clock_gettime(CLOCK_MONOTONIC, &ready_at);
    ready_at.tv_sec += (ready_at.tv_nsec += 1000000) / 1000000000;
    ready_at.tv_nsec %= 1000000000;
    imbrex_finish_begin(&finish, IMBREX_HERE); /* the name means another event in each finish */
    imbrex_progress_register(look, NULL, IMBREX_HERE);
    spec.argument = &sum;
    spec.access_count = 1;
    spec.accesses = accesses;
    imbrex_spawn(&spec, NULL);
    while (imbrex_noprogress() && !is_ready()) continue;
    spec.name = "border", spec.body = border, spec.access_count = 2;
    imbrex_spawn(&spec, NULL);
    if (imbrex_finish_end(&finish) != IMBREX_SUCCESS) return puts(imbrex_message()), 1;
  }
  printf("the sum is %d\n", sum);
  return sum == 62 ? 0 : 1;
}
