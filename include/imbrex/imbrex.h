/* SPDX-License-Identifier: BSD-3-Clause */
/* imbrex for C, and for languages that call C. <imbrex/mpi.h> adds the requests of MPI.

   A function that returns int returns IMBREX_SUCCESS or another of the codes below, unless its
   comment says otherwise. After an error imbrex_message() says what happened, with which values,
   where, and what to do; the call has changed nothing. No exception leaves a function of this
   header. Any thread may call every function; only functions whose comment says so suspend.

   With IMBREX_SERIAL defined the program does not link imbrex: tasks are plain calls, made at
   once (detail/serial.h). The program then runs its noprogress path. */
#ifndef IMBREX_IMBREX_H
#define IMBREX_IMBREX_H

#include <stddef.h>
#include <stdint.h>

#include "imbrex/version.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  IMBREX_SUCCESS = 0,
  IMBREX_ERR_USE = 1,    /* a wrong call, or an environment in which the runtime cannot work */
  IMBREX_ERR_TASK = 2,   /* the call was right, but a task that it waited for has failed */
  IMBREX_ERR_MPI = 3,    /* an operation of MPI has failed */
  IMBREX_ERR_MEMORY = 4,
  IMBREX_ERR_CANCELLED = 5  /* the task of this future has not run: its finish was told to stop */
};

enum {
  IMBREX_IN = 0, /* reads */
  IMBREX_OUT,
  IMBREX_INOUT,
  IMBREX_MUTEXINOUTSET, /* any order among neighbours of this kind, one at a time */
  IMBREX_INOUTSET,      /* any order among neighbours of this kind, together */
  IMBREX_AFTER,         /* `object` is an imbrex_future_t: the task runs after it is ready */
  IMBREX_NAMED,         /* `object` is the name, a const char*, of an event: see imbrex_trigger() */
  /* Add it to one of the first five kinds: the access covers `number` bytes from `object` on,
     and conflicts with all accesses that overlap them. Without it, an access covers one address. */
  IMBREX_RANGE = 16
};

/* The kind of hardware that a place is a part of. Tasks run in places of the first two kinds
   only. */
enum {
  IMBREX_PLACE_MEMORY = 0,
  IMBREX_PLACE_CACHE,
  IMBREX_PLACE_NVGPU,
  IMBREX_PLACE_AMGPU,
  IMBREX_PLACE_FPGA,
  IMBREX_PLACE_PGAS
};

typedef struct {
  int kind;
  const void* object; /* its address names the access; nothing is read there */
  int64_t number;     /* of a named event; for a range the bytes */
} imbrex_access;

/* `result` has result_bytes bytes, for the future. Returns 0; any other value fails the task:
   the future and the finish around it return IMBREX_ERR_TASK, and tasks that depend on it do not
   run. */
typedef int imbrex_body(void* argument, void* result);

typedef struct {
  const char* name; /* copied, each text once for the whole program, unless `kept` */
  const char* file; /* not copied: a literal, or from imbrex_keep() */
  int line;
  imbrex_body* body;
  const void* argument;
  size_t argument_bytes; /* 0: the body gets `argument`; else a copy of so many bytes of it */
  size_t result_bytes;
  int access_count;
  const imbrex_access* accesses; /* read by imbrex_spawn() only */
  int priority;                  /* a larger number runs first */
  int tied;                      /* 1: always resumes on the thread that started it */
  int kept;                      /* 1: `name` is a literal, or from imbrex_keep() */
  int run_after_failure;         /* 1: runs although a task that it depends on has failed */
  int decides;                   /* 1: all tasks of the next iteration of a loop follow it */
} imbrex_task_spec;

#if defined(__GNUC__)
#define IMBREX_IS_LITERAL(text) __builtin_constant_p(text)
#else
#define IMBREX_IS_LITERAL(text) 0
#endif
/* Initialises a spec; the other fields are 0. */
#define IMBREX_TASK(task_name, task_body)                                               \
  { .name = (task_name), .file = __FILE__, .line = __LINE__, .body = (task_body),       \
    .argument = NULL, .argument_bytes = 0, .result_bytes = 0, .access_count = 0,        \
    .accesses = NULL, .priority = 0, .tied = 0, .kept = IMBREX_IS_LITERAL(task_name),   \
    .run_after_failure = 0, .decides = 0 }
/* For the parameters `file` and `line`. */
#define IMBREX_HERE __FILE__, __LINE__

typedef struct imbrex_future_s* imbrex_future_t;
typedef struct imbrex_promise_s* imbrex_promise_t;
typedef struct imbrex_event_s* imbrex_event_t;
typedef struct imbrex_finish_s* imbrex_finish_t;

#ifdef IMBREX_SERIAL
#ifdef __cplusplus
}
#endif
#include "imbrex/detail/serial.h"
#ifdef __cplusplus
extern "C" {
#endif
#else

/* The reason of the last failed call of this thread. Read it right after the call: the text is
   valid until the thread's next call. */
const char* imbrex_message(void);
/* Copies `text` and keeps it until the end of the program; null if memory is exhausted. */
const char* imbrex_keep(const char* text);
/* The version of the library that the program runs with, such as "0.1.0". */
const char* imbrex_version(void);

/* ---- tasks ---- */

/* Creates a task. `future` may be null. The children of one task behave as if they ran in the
   order of their creation. Suspends if the caller is IMBREX_TASKS_AHEAD tasks ahead. */
int imbrex_spawn(const imbrex_task_spec* spec, imbrex_future_t* future);
/* Creates a task that runs at a place (docs/user/places.md), from 0 on; its children run there
   too, unless they name another place. -1: all workers. Suspends as imbrex_spawn(). */
int imbrex_spawn_at(const imbrex_task_spec* spec, int place, imbrex_future_t* future);
/* Ends the running task's access to `object` before the task ends. */
int imbrex_release(const void* object);
/* Ends the running task's access to a range, named with the same bounds. Neither suspends.
   IMBREX_ERR_USE: the running task has declared no such access. */
int imbrex_release_range(const void* begin, size_t bytes);

/* imbrex_finish_end() waits for all tasks that were spawned between the two calls, however deep.
   It suspends, returns IMBREX_ERR_TASK if a task has failed, and frees `finish`. In one task the
   pairs nest like brackets. */
int imbrex_finish_begin(imbrex_finish_t* finish, const char* file, int line);
int imbrex_finish_end(imbrex_finish_t* finish);
/* imbrex_finish_begin() for tasks that can be stopped. `on_error` 1: the first failure of a task
   does that; else 0. <imbrex/scope.hpp> explains it. */
int imbrex_finish_begin_stoppable(imbrex_finish_t* finish, int on_error, const char* file,
                                  int line);
/* Tasks of this finish, however deep, that have not begun do not begin, and their futures return
   IMBREX_ERR_CANCELLED; imbrex_finish_end() does not count them as failures. Any thread, before
   imbrex_finish_end(). Never suspends. IMBREX_ERR_USE: of imbrex_finish_begin(). */
int imbrex_request_stop(imbrex_finish_t finish);
/* Returns 1 if such a finish around the running task has been told to stop, else 0. Never
   suspends. */
int imbrex_stop_requested(void);
/* Suspends until the children of the running task are complete; not their descendants.
   Their failures: ask the futures, or use a finish. IMBREX_ERR_USE: in a callback. */
int imbrex_taskwait(void);
/* Suspends: all tasks that are ready now run first. IMBREX_ERR_USE: in a callback. */
int imbrex_yield(void);

/* ---- loops whose graph is built once: <imbrex/iterate.hpp> explains them ---- */

/* Does what a loop does that calls body(argument, i) for i from 0 to count - 1 between
   imbrex_finish_begin() and imbrex_finish_end(). The body only creates tasks, without futures, and
   creates the same ones in iteration i as in i - period: it is called for one period. It returns
   IMBREX_SUCCESS; after any other value nothing runs, and the call returns IMBREX_ERR_USE.
   A task keeps its copy of the argument, and what it writes there, in all iterations.
   IMBREX_CHECK=1 compares the bytes of these copies in two periods: set bytes between the members
   of a struct to 0. Suspends until all tasks are complete. IMBREX_ERR_TASK: a task has failed, and
   no iteration after its own has begun. */
int imbrex_iterate(int64_t count, int64_t period, int (*body)(void* argument, int64_t iteration),
                   void* argument, const char* file, int line);
/* Returns the iteration that the running task belongs to, or the nearest task above it: from 0 on;
   -1: none. Never suspends. */
int64_t imbrex_iteration(void);
/* The iteration of the running task is the last. Never suspends. IMBREX_ERR_USE: the task does not
   decide (imbrex_task_spec). */
int imbrex_stop_iterating(void);

/* ---- places ---- */

/* The functions of this group never suspend. Those that take or count places start the runtime. */
/* Returns the number of places; -1: the runtime cannot start (imbrex_message() says why). */
int imbrex_place_count(void);
/* Returns the name of a place, which is kept for ever; null: there is no such place. */
const char* imbrex_place_name(int place);
/* Returns the place that the running task was given; -1: all workers. */
int imbrex_current_place(void);
/* Returns the first place that has the worker of the caller; -1: none has. */
int imbrex_local_place(void);
/* Returns the number of the caller's worker; -1: the thread is no worker. */
int imbrex_current_worker(void);
/* The tree of places, whose root is -1, all workers. */
int imbrex_parent_place(void);        /* the parent of imbrex_current_place() */
int imbrex_place_parent(int place);   /* the parent of -1 is -1; -2: there is no such place */
int imbrex_place_level(int place);    /* 0 for the root; -1: there is no such place */
int imbrex_place_kind(int place);     /* one of the kinds above; -1: there is no such place */
/* Returns the number of children of the place, or -1 if there is no such place. Writes the first
   `count` of them at most to `children`, which may be null if `count` is 0. */
int imbrex_place_children(int place, int* children, int count);

/* ---- futures of bytes ---- */

/* Suspends until the future is ready. IMBREX_ERR_TASK: its task has failed, or its promise was
   freed. */
int imbrex_future_wait(imbrex_future_t future);
/* Suspends until the future is ready, then copies its value to `value`. `bytes` must be the size
   of the value. */
int imbrex_future_get(imbrex_future_t future, void* value, size_t bytes);
int imbrex_future_ready(imbrex_future_t future); /* 1 or 0 */
void imbrex_future_free(imbrex_future_t* future);

/* imbrex_when_all() makes a future that is ready when all futures are, at once if there are
   none. imbrex_when_any() makes a future that is ready when the first is; imbrex_future_index()
   then returns its position (-1 for another future, or one that is not ready). Never suspend. */
int imbrex_when_all(int count, const imbrex_future_t futures[], imbrex_future_t* all);
int imbrex_when_any(int count, const imbrex_future_t futures[], imbrex_future_t* first);
int imbrex_future_index(imbrex_future_t first);

/* Makes a promise and its future. Any thread sets the promise, once. If it is freed without a
   value, its future fails. Never suspends. */
int imbrex_promise_create(size_t bytes, imbrex_promise_t* promise, imbrex_future_t* future);
int imbrex_promise_set(imbrex_promise_t promise, const void* value);
void imbrex_promise_free(imbrex_promise_t* promise);

/* ---- events: something that happens once ---- */

/* Makes an event that has not fired. The program frees it when no task waits for it any more. */
int imbrex_event_create(imbrex_event_t* event);
int imbrex_event_set(imbrex_event_t event); /* any thread; a second time is an error */
int imbrex_event_ready(imbrex_event_t event); /* 1 or 0 */
int imbrex_event_wait(imbrex_event_t event);     /* suspends */
/* Keeps the dependents of the running task waiting, after its body has ended, until `event`
   fires. */
int imbrex_event_release_after(imbrex_event_t event);
/* Ends the running task's access to `object`, or to a range named with the same bounds, when
   `event` fires, perhaps long after the task. The task is complete at the end of its body. */
int imbrex_event_release_object_after(imbrex_event_t event, const void* object);
int imbrex_event_release_range_after(imbrex_event_t event, const void* begin, size_t bytes);
void imbrex_event_free(imbrex_event_t* event); /* when no task waits for it any more */

/* ---- named events and progress functions: <imbrex/trigger.hpp> explains them ---- */

/* Makes a future that is ready once imbrex_trigger() is called with this name and number. */
int imbrex_named(const char* name, int64_t number, imbrex_future_t* future, const char* file,
                 int line);
int imbrex_trigger(const char* name, int64_t number); /* any thread, any callback */
/* For omp.h: an address that stands for the event; the address must not be read. Ends the
   program if `number` is not in 0 to 2^36 - 1. */
const char* imbrex_named_address(const char* name, int64_t number);
/* Registers a progress function for the innermost finish of the running task. Idle workers call
   it, and busy workers between tasks, one thread at a time, until it returns 0; a value below 0
   means that it has failed. */
int imbrex_progress_register(int (*function)(void* argument), void* argument, const char* file,
                             int line);
/* Returns 1 where no runtime calls progress functions, and the program must wait itself; else 0. */
static inline int imbrex_noprogress(void) { return 0; }

#endif /* IMBREX_SERIAL */

#ifdef __cplusplus
}
#endif
#endif
