/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of data.h that does not call MPI. Included by data.h. */
#ifndef IMBREX_DISTRIBUTED_DATA_TASKS_H
#define IMBREX_DISTRIBUTED_DATA_TASKS_H

#include <stddef.h>
#include <stdint.h>

#include "imbrex/imbrex.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Thread safety: only the thread or task that made a space makes its data and inserts tasks. */
typedef struct imbrex_space_s* imbrex_space_t;
typedef struct imbrex_data_s* imbrex_data_t; /* lives as long as its space */

/* The kinds of access: IMBREX_IN, IMBREX_OUT and IMBREX_INOUT of imbrex.h, and this one, which adds
   to the datum by `reduction`, in any order and on any ranks. */
enum { IMBREX_DATA_REDUCE = 32 };

/* A reduction lives as long as the space; its address identifies it. Both functions handle
   `count` contiguous elements. Any thread may call them; they must not wait. */
typedef struct {
  void (*combine)(void* into, const void* from, size_t count);
  void (*clear)(void* memory, size_t count); /* sets elements to the identity */
} imbrex_data_reduction;

typedef struct {
  imbrex_data_t data;
  int kind;
  const imbrex_data_reduction* reduction; /* for IMBREX_DATA_REDUCE */
} imbrex_data_access;

/* The view of a datum that a body gets: `columns` columns of `rows` elements; `leading` elements
   lie between the beginnings of two columns. An array has one column. */
typedef struct {
  void* memory; /* the body must not write to it, if the task only reads it */
  size_t rows, columns, leading;
} imbrex_data_view;

/* `views` holds one view for each access, in their order. Returns 0; any other value fails the
   task. */
typedef int imbrex_data_body(void* argument, const imbrex_data_view* views);

typedef struct {
  const char* name; /* copied, each text once for the whole program, unless `kept` */
  const char* file; /* not copied: a literal, or from imbrex_keep() */
  int line;
  imbrex_data_body* body;
  const void* argument;
  size_t argument_bytes; /* 0: the body gets `argument`; else a copy of so many bytes of it */
  int access_count;
  const imbrex_data_access* accesses; /* read by imbrex_data_launch() only */
  int priority;                       /* a larger number runs first, and its data travel first */
  int on;   /* a rank of the space; -1: the owner of the first datum that it writes */
  int kept; /* 1: `name` is a literal, or from imbrex_keep() */
  int decides; /* 1: imbrex_stop_iterating() in it ends imbrex_space_iterate() on all ranks */
} imbrex_data_task_spec;

/* Initialises a spec; the other fields are 0. */
#define IMBREX_DATA_TASK(task_name, task_body)                                          \
  { .name = (task_name), .file = __FILE__, .line = __LINE__, .body = (task_body),       \
    .argument = NULL, .argument_bytes = 0, .access_count = 0, .accesses = NULL,         \
    .priority = 0, .on = -1, .kept = IMBREX_IS_LITERAL(task_name), .decides = 0 }

typedef struct {
  const char* name; /* for messages; copied; null: "space" */
  int64_t tasks_ahead; /* of this rank, that have not run; 0: any number; -1: 4096 */
} imbrex_space_options;

/* Frees the space and its data. Collective. Suspends until all ranks have called it. Failures
   since the last finish are printed, and the process fails. */
int imbrex_space_free(imbrex_space_t* space);
/* Return the number of this rank, and of the ranks of the space; -1 for a null space. Never
   suspend. */
int imbrex_space_rank(imbrex_space_t space);
int imbrex_space_size(imbrex_space_t space);

/* Makes a datum; every rank makes the same data in the same order. `owner`: a rank of the space;
   -1: the rank that writes it first, and then `memory` is null. Only the owner's `memory`
   counts: it stays until the space is freed, and its contents are the first value. With null,
   the runtime allocates memory, zero at first. `leading` 0: `rows`. `name`, for messages, may be
   null. Never suspends. */
int imbrex_data_create(imbrex_space_t space, int owner, size_t rows, size_t columns,
                       size_t element_bytes, void* memory, size_t leading, const char* name,
                       imbrex_data_t* data);
/* Returns the owner after the tasks inserted so far; -1: no owner, or a null datum. Never
   suspends. */
int imbrex_data_owner(imbrex_data_t data);

/* Inserts a task. Every rank inserts the same sequence; the body runs on one rank. Suspends if
   this rank is `tasks_ahead` tasks ahead of the tasks that have run. */
int imbrex_data_launch(imbrex_space_t space, const imbrex_data_task_spec* spec);
/* Returns 0 if this rank may leave the insertion out, 1 if it must insert, -1 if the spec is
   wrong. It counts only if the rank asks for each task in turn, and if all tasks that write a
   datum run on its owner. Never suspends. */
int imbrex_data_concerns(imbrex_space_t space, const imbrex_data_task_spec* spec);
/* Inserts a flush, as a part of the sequence. After it the owner has the value. May suspend, as
   imbrex_data_launch(). */
int imbrex_data_flush(imbrex_data_t data, const char* file, int line);
int imbrex_data_discard(imbrex_data_t data, const char* file, int line);
int imbrex_data_move(imbrex_data_t data, int owner, const char* file, int line);

/* Inserts the tasks, flushes, discards and moves of one iteration. Returns 0; any other value ends
   the call with IMBREX_ERR_USE, and nothing of the loop runs. */
typedef int imbrex_space_loop_body(void* argument, int64_t iteration);
/* Does what a loop does that calls the body for each iteration from 0 to `count` - 1, if the body
   inserts the same sequence in an iteration as `period` iterations before. Calls it for one period;
   the tasks then run in each iteration without being inserted. All ranks call it at the same place
   of the sequence. A task learns its iteration by imbrex_iteration(). If a task that decides calls
   imbrex_stop_iterating(), its iteration is the last one on all ranks. Suspends until the tasks of
   this rank have run. Failures of tasks: imbrex_space_finish(). */
int imbrex_space_iterate(imbrex_space_t space, int64_t count, int64_t period,
                         imbrex_space_loop_body* body, void* argument, const char* file, int line);

/* Collective. Suspends until all inserted tasks have run. IMBREX_ERR_TASK: a task has failed, on
   any rank. */
int imbrex_space_finish(imbrex_space_t space);
/* Returns where the value of the datum is: after a finish, on the owner. Never suspends. */
int imbrex_data_get(imbrex_data_t data, imbrex_data_view* view);

/* ---- the parts of imbrex_space_create() of data.h ---- */

/* IMBREX_ERR_USE: messages between ranks are not open. Any thread; never suspends. */
int imbrex_space_check(void);
int imbrex_space_open(uint64_t id, int ranks, const int world[], const int nodes[],
                      const imbrex_space_options* options, imbrex_space_t* space);
/* Fails with IMBREX_ERR_USE; imbrex_message() then returns `why`. Any thread; never suspends. */
int imbrex_space_refuse(const char* why);

#ifdef __cplusplus
}
#endif
#endif
