// SPDX-License-Identifier: BSD-3-Clause
// imbrex's C interface in OpenMP tasks: events, named events in depend clauses, progress functions,
// tasks of imbrex beside OpenMP's, and what newer compilers ask for, under our libgomp.so.1.
#include <imbrex/omp.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUIRE(condition)                                                                 \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, imbrex_message());        \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

// More tasks wait for events than there are threads; those that fire them are created last.
static void tasks_wait_for_events(void) {
  enum { count = 500 };  // none may be a call of its creator
  imbrex_event_t events[count];
  int seen = 0;
  for (int i = 0; i < count; ++i) REQUIRE(imbrex_event_create(&events[i]) == IMBREX_SUCCESS);
#pragma omp parallel
#pragma omp single
  {
    for (int i = 0; i < count; ++i) {
#pragma omp task firstprivate(i) shared(events, seen)
      {
        const int number = omp_get_thread_num();
        REQUIRE(imbrex_event_wait(events[i]) == IMBREX_SUCCESS);
        REQUIRE(omp_get_thread_num() == number);
#pragma omp atomic
        ++seen;
      }
    }
    for (int i = count - 1; i >= 0; --i) {
#pragma omp task firstprivate(i) shared(events)
      REQUIRE(imbrex_event_set(events[i]) == IMBREX_SUCCESS);
    }
#pragma omp taskwait
    REQUIRE(seen == count);
  }
  for (int i = 0; i < count; ++i) imbrex_event_free(&events[i]);
}

// A task that names an event begins after the trigger, and its siblings before.
static void a_named_event_orders_tasks(void) {
  int before = 0, after = 0, both = 0;
#pragma omp parallel
#pragma omp single
  for (int step = 0; step < 20; ++step) {
#pragma omp taskgroup
    {
#pragma omp task depend(in : *imbrex_named("done")) shared(before, after) firstprivate(step)
      {
        REQUIRE(before == step + 1);
        ++after;
      }
      // Beside an address, and with a number; two names; kinds of depend mean the same.
#pragma omp task depend(inout : both) depend(in : *imbrex_named("part", step), \
                                             *imbrex_named("done")) shared(both, before)
      {
        REQUIRE(before > 0);
        ++both;
      }
#pragma omp task shared(before)
      {
        ++before;
        REQUIRE(imbrex_trigger("done") == IMBREX_SUCCESS);
      }
#pragma omp task firstprivate(step)
      REQUIRE(imbrex_trigger("part", step) == IMBREX_SUCCESS);
    }
    REQUIRE(before == step + 1 && after == step + 1 && both == step + 1);
  }
}

// taskwait and an undeferred task wait for events too, and outside of parallel regions.
static void undeferred_tasks_wait(void) {
  int state = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup
  {
#pragma omp task shared(state)
    {
      usleep(2000);
      state = 1;
      REQUIRE(imbrex_trigger("first") == IMBREX_SUCCESS);
    }
#pragma omp task if (0) depend(in : *imbrex_named("first")) shared(state)
    {
      REQUIRE(state == 1);
      state = 2;
    }
#pragma omp task shared(state)
    {
      REQUIRE(state == 2);
      state = 3;
      REQUIRE(imbrex_trigger("second") == IMBREX_SUCCESS);
    }
#pragma omp taskwait depend(in : *imbrex_named("second"))
    REQUIRE(state == 3);
  }
  REQUIRE(imbrex_trigger("third") == IMBREX_SUCCESS);
#pragma omp task depend(in : *imbrex_named("third")) shared(state)
  state = 4;
  REQUIRE(state == 4);
}

static int calls;
static int look(void* unused) {
  (void)unused;
  if (++calls % 5 != 0) return 1;
  return imbrex_trigger("found") == IMBREX_SUCCESS ? 0 : -1;
}

// The runtime calls it while the tasks of the taskgroup wait.
static void a_progress_function_triggers(void) {
  int found = 0;
#pragma omp parallel
#pragma omp single
  for (int step = 0; step < 10; ++step) {
#pragma omp taskgroup
    {
      REQUIRE(imbrex_progress_function(look) == IMBREX_SUCCESS);
#pragma omp task depend(in : *imbrex_named("found")) shared(found)
      ++found;
    }
    REQUIRE(found == step + 1 && calls == 5 * (step + 1));
  }
  // There must be a taskgroup, or a finish.
#pragma omp parallel num_threads(1)
  REQUIRE(imbrex_progress_function(look) == IMBREX_ERR_USE);
}

// Dependents of the task wait for the event; so does a thread that creates it undeferred.
static void a_task_is_held_by_an_event(void) {
  imbrex_event_t event, undeferred;
  int fired = 0, fired_undeferred = 0, order = 0;
  REQUIRE(imbrex_event_create(&event) == IMBREX_SUCCESS);
  REQUIRE(imbrex_event_create(&undeferred) == IMBREX_SUCCESS);
#pragma omp parallel
#pragma omp single
  {
#pragma omp task depend(out : order) shared(event, order)
    {
      order = 1;
      REQUIRE(imbrex_event_release_after(event) == IMBREX_SUCCESS);
    }
#pragma omp task depend(in : order) shared(fired, order)
    REQUIRE(order == 1 && fired == 1);
#pragma omp task shared(event, undeferred, fired, fired_undeferred)
    {
      usleep(2000);
      fired = 1;
      REQUIRE(imbrex_event_set(event) == IMBREX_SUCCESS);
      usleep(2000);
      fired_undeferred = 1;
      REQUIRE(imbrex_event_set(undeferred) == IMBREX_SUCCESS);
    }
#pragma omp task if (0) shared(undeferred)
    REQUIRE(imbrex_event_release_after(undeferred) == IMBREX_SUCCESS);
    REQUIRE(fired_undeferred == 1);
  }
  imbrex_event_free(&event);
  imbrex_event_free(&undeferred);
}

static int add(void* sum, void* result) {
  (void)result;
  ++*(int*)sum;
  return 0;
}

// imbrex's own tasks, futures and scopes in OpenMP's; OpenMP's tasks in imbrex's scopes.
static void both_kinds_of_tasks(void) {
  int sum = 0, theirs = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 20; ++i) {
#pragma omp task shared(sum, theirs) depend(inout : sum)
    {
      imbrex_finish_t finish;
      imbrex_future_t future;
      imbrex_task_spec spec = IMBREX_TASK("add", add);
      spec.argument = &sum;
      REQUIRE(imbrex_spawn(&spec, &future) == IMBREX_SUCCESS);
      REQUIRE(imbrex_future_wait(future) == IMBREX_SUCCESS);
      imbrex_future_free(&future);
      REQUIRE(imbrex_finish_begin(&finish, IMBREX_HERE) == IMBREX_SUCCESS);
      for (int j = 0; j < 5; ++j) {
#pragma omp task shared(theirs)
        {
#pragma omp atomic
          ++theirs;
        }
      }
      REQUIRE(imbrex_finish_end(&finish) == IMBREX_SUCCESS);
      int now;
#pragma omp atomic read
      now = theirs;
      REQUIRE(now == 5 * sum);
    }
  }
  REQUIRE(sum == 20 && theirs == 100);
}

// From GCC 13 on, depend(inout: omp_all_memory) is compiled to this.
static void a_null_address_is_all_memory(void) {
  enum { count = 20 };
  int* const all_memory = NULL;
  int parts[count] = {0};
  int sum = -1;
  int wrong = 0;
#pragma omp parallel
#pragma omp single
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < count; ++i) {
#pragma omp task depend(out : parts[i]) firstprivate(i, round) shared(parts, sum, wrong)
      {
        if (round > 1 && sum != count * (round - 1)) {
#pragma omp atomic
          ++wrong;
        }
        usleep(100);
        parts[i] = round;
      }
    }
#pragma omp task depend(inout : *all_memory) depend(in : parts[0]) shared(parts, sum)
    {
      int found = 0;
      for (int i = 0; i < count; ++i) found += parts[i];
      usleep(1000);
      sum = found;
    }
  }
  REQUIRE(wrong == 0 && sum == 3 * count);
}

// An error at the end of a taskgroup ends the program, since no call could return it.
static void trigger_nobody(void) {
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup
  (void)imbrex_trigger("nobody");
}

/* ---- a finish that is left open ---- */

static int succeeds(void* argument, void* result) {
  (void)argument, (void)result;
  return 0;
}

static void leave_open(void) {
  static imbrex_finish_t kept[64];
  static int next;
  int mine;
#pragma omp atomic capture
  mine = next++;
  const imbrex_task_spec spec = IMBREX_TASK("late", succeeds);
  REQUIRE(imbrex_finish_begin(&kept[mine], "solver.c", 12) == IMBREX_SUCCESS);
  REQUIRE(imbrex_spawn(&spec, NULL) == IMBREX_SUCCESS);
}

static void run_case(const char* name) {
  if (strcmp(name, "unnamed") == 0) trigger_nobody();
  if (strcmp(name, "open_member") == 0) {
#pragma omp parallel num_threads(2)
    leave_open();
  }
  if (strcmp(name, "open_deferred") == 0) {
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp task
    leave_open();
  }
  if (strcmp(name, "open_undeferred") == 0) {
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp task if (0)
    leave_open();
  }
  if (strcmp(name, "open_final") == 0) {
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp task final(1)
    {
#pragma omp task
      leave_open();
    }
  }
  if (strcmp(name, "open_taskloop") == 0) {
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskloop grainsize(1) if (0)
    for (int i = 0; i < 2; ++i) leave_open();
  }
  if (strcmp(name, "open_serial") == 0) {
#pragma omp task
    leave_open();
  }
  if (strcmp(name, "ended_serial") == 0) { /* a call of main's code may end what main has begun */
    imbrex_finish_t outer, inner;
    REQUIRE(imbrex_finish_begin(&outer, IMBREX_HERE) == IMBREX_SUCCESS);
    REQUIRE(imbrex_finish_begin(&inner, IMBREX_HERE) == IMBREX_SUCCESS);
#pragma omp task shared(inner)
    REQUIRE(imbrex_finish_end(&inner) == IMBREX_SUCCESS);
    REQUIRE(imbrex_finish_end(&outer) == IMBREX_SUCCESS);
  }
  if (strcmp(name, "open_target") == 0) {
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp target
    leave_open();
  }
  if (strcmp(name, "open_main") == 0) leave_open();
  if (strcmp(name, "open_taskgroup") == 0) {
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskgroup
    leave_open();
  }
}

int main(int argc, char** argv) {
  if (argc > 1) {
    run_case(argv[1]);
    printf("went on\n");
    return 0;
  }
  tasks_wait_for_events();
  a_named_event_orders_tasks();
  undeferred_tasks_wait();
  a_progress_function_triggers();
  a_task_is_held_by_an_event();
  both_kinds_of_tasks();
  a_null_address_is_all_memory();
  printf("done\n");
  return 0;
}
