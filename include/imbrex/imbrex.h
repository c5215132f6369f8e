/* SPDX-License-Identifier: BSD-3-Clause */
/* imbrex for C, and for whatever calls C. <imbrex/mpi.h> adds the requests of MPI.

   Every function that returns int, unless it says otherwise, returns IMBREX_SUCCESS or another of
   the codes below; then imbrex_message() says what happened, with which values, where, and what to
   do, and the call has changed nothing. No exception leaves a function of this header.

   With IMBREX_SERIAL defined nothing of imbrex is linked: tasks are plain calls, made at once
   (detail/serial.h); a program has its noprogress path then. */
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
  IMBREX_ERR_TASK = 2,   /* the call was right: a task that it waited for has failed */
  IMBREX_ERR_MPI = 3,    /* an operation of MPI has failed */
  IMBREX_ERR_MEMORY = 4
};

enum {
  IMBREX_IN = 0, /* reads */
  IMBREX_OUT,
  IMBREX_INOUT,
  IMBREX_MUTEXINOUTSET, /* in any order, one at a time */
  IMBREX_INOUTSET,      /* in any order, together */
  IMBREX_AFTER,         /* `object` is an imbrex_future_t: runs after it is ready */
  IMBREX_NAMED,         /* `object` is the name, a const char*, of an event: see imbrex_trigger() */
  /* To be added to one of the first five: `number` bytes from `object` on, which conflict with all
     that they overlap. Without, an access is to one address. */
  IMBREX_RANGE = 16
};

/* What a place is a part of. Tasks run in places of the first two kinds only. */
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
  const void* object; /* named by its address; nothing is read there */
  int64_t number;     /* of a named event; of a range, bytes */
} imbrex_access;

/* `result` has result_bytes bytes, for the future. Returns 0; else the task has failed: its future,
   and the finish around it, return IMBREX_ERR_TASK, and tasks that depend on it do not run. */
typedef int imbrex_body(void* argument, void* result);

typedef struct {
  const char* name; /* copied, each text once for the whole program, unless `kept` */
  const char* file; /* not copied: a literal, or from imbrex_keep() */
  int line;
  imbrex_body* body;
  const void* argument;
  size_t argument_bytes; /* 0: the body gets `argument`; else a copy of so many bytes there */
  size_t result_bytes;
  int access_count;
  const imbrex_access* accesses; /* read by imbrex_spawn() only */
  int priority;                  /* larger runs first */
  int tied;                      /* 1: resumes always on the thread that started it */
  int kept;                      /* 1: `name` is a literal, or from imbrex_keep() */
  int run_after_failure;         /* 1: runs although what it depends on has failed */
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
    .run_after_failure = 0 }
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

/* Why the last call that did not succeed failed. To be read right after it: the text is the
   thread's, and valid until its next call. */
const char* imbrex_message(void);
/* The same text, kept until the end of the program; null for want of memory. */
const char* imbrex_keep(const char* text);
/* Of the library that the program runs with, such as "0.1.0". */
const char* imbrex_version(void);

/* ---- tasks ---- */

/* Creates a task. `future` may be null. The children of one task behave as if run in the order of
   their creation. The caller may be suspended, if it is IMBREX_WINDOW tasks ahead. */
int imbrex_spawn(const imbrex_task_spec* spec, imbrex_future_t* future);
/* The same for a task that runs at a place (docs/user/places.md), from 0 on; so do its children,
   unless they are given another one; -1: on all workers. */
int imbrex_spawn_at(const imbrex_task_spec* spec, int place, imbrex_future_t* future);
/* Ends the running task's access to `object` before the task ends. */
int imbrex_release(const void* object);
int imbrex_release_range(const void* begin, size_t bytes); /* a range, as it was named */

/* Between the two: tasks that are spawned here, however deep, end in imbrex_finish_end(), which
   suspends, returns IMBREX_ERR_TASK if any has failed, and frees `finish`. In one task they nest
   like brackets. */
int imbrex_finish_begin(imbrex_finish_t* finish, const char* file, int line);
int imbrex_finish_end(imbrex_finish_t* finish);
int imbrex_taskwait(void); /* suspends until the children, not their descendants, are complete */
int imbrex_yield(void);    /* suspends: whatever is ready now runs first */

/* ---- places ---- */

int imbrex_place_count(void); /* starts the runtime; -1: it cannot (imbrex_message() says why) */
const char* imbrex_place_name(int place); /* kept; null, if there is no such place */
int imbrex_current_place(void);  /* that the running task was given; -1: all workers */
int imbrex_local_place(void);    /* the first one that has the worker which runs the caller */
int imbrex_current_worker(void); /* its number; -1 in a thread that is none */
/* The tree of places, whose root is -1, all workers. */
int imbrex_parent_place(void);        /* of imbrex_current_place() */
int imbrex_place_parent(int place);   /* of -1: itself; -2: there is no such place */
int imbrex_place_level(int place);    /* 0 is the root's; -1: there is no such place */
int imbrex_place_kind(int place);     /* one of those above; -1: there is no such place */
/* How many children the place has, of which the first `count` at most are written to `children`,
   which may be null if that is 0; -1: there is no such place. */
int imbrex_place_children(int place, int* children, int count);

/* ---- futures of bytes ---- */

/* Suspends until it is ready. IMBREX_ERR_TASK: what it stands for has failed. */
int imbrex_future_wait(imbrex_future_t future);
/* The same, then copies its `bytes` bytes, which must be as many as it has, to `value`. */
int imbrex_future_get(imbrex_future_t future, void* value, size_t bytes);
int imbrex_future_ready(imbrex_future_t future); /* 1 or 0 */
void imbrex_future_free(imbrex_future_t* future);

/* Ready when all are, at once if there are none; when the first is, whose position
   imbrex_future_index() then tells (-1 if this is no such future, or not ready). */
int imbrex_when_all(int count, const imbrex_future_t futures[], imbrex_future_t* all);
int imbrex_when_any(int count, const imbrex_future_t futures[], imbrex_future_t* first);
int imbrex_future_index(imbrex_future_t first);

/* A future that any thread sets, once. Freed without having been set, its future fails. */
int imbrex_promise_create(size_t bytes, imbrex_promise_t* promise, imbrex_future_t* future);
int imbrex_promise_set(imbrex_promise_t promise, const void* value);
void imbrex_promise_free(imbrex_promise_t* promise);

/* ---- events: what happens once ---- */

/* Makes one that has not happened. The program frees it, when nobody waits for it any more. */
int imbrex_event_create(imbrex_event_t* event);
int imbrex_event_set(imbrex_event_t event); /* any thread; a second time is an error */
int imbrex_event_ready(imbrex_event_t event); /* 1 or 0 */
int imbrex_event_wait(imbrex_event_t event);     /* suspends */
/* The running task, once its body has ended, keeps its dependents waiting until `event` fires. */
int imbrex_event_release_after(imbrex_event_t event);
/* The running task's access to `object`, or to a range as it was named, ends when `event` fires,
   perhaps long after the task, which is complete at the end of its body. */
int imbrex_event_release_object_after(imbrex_event_t event, const void* object);
int imbrex_event_release_range_after(imbrex_event_t event, const void* begin, size_t bytes);
void imbrex_event_free(imbrex_event_t* event); /* when nobody waits for it any more */

/* ---- named events and progress functions: <imbrex/trigger.hpp> says what they mean ---- */

/* A future that is ready once imbrex_trigger() was called with the same name and number. */
int imbrex_named(const char* name, int64_t number, imbrex_future_t* future, const char* file,
                 int line);
int imbrex_trigger(const char* name, int64_t number); /* any thread, any callback */
/* For omp.h: an address that stands for the event, where nothing is to be read. Ends the program if
   `number` is not 0 to 2^36 - 1. */
const char* imbrex_named_place(const char* name, int64_t number);
/* Called by idle workers and between tasks, by one at a time, until it returns 0; below 0 it has
   failed. For the innermost finish of the running task. */
int imbrex_progress_register(int (*function)(void* argument), void* argument, const char* file,
                             int line);
/* 1 where no runtime calls progress functions, and the program must wait itself; else 0. */
static inline int imbrex_noprogress(void) { return 0; }

#endif /* IMBREX_SERIAL */

#ifdef __cplusplus
}
#endif
#endif
