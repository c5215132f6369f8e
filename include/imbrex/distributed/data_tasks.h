/* SPDX-License-Identifier: BSD-3-Clause */
/* What data.h consists of but for MPI. Included by it. */
#ifndef IMBREX_DISTRIBUTED_DATA_TASKS_H
#define IMBREX_DISTRIBUTED_DATA_TASKS_H

#include <stddef.h>
#include <stdint.h>

#include "imbrex/imbrex.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Thread safety: one thread or task makes data of a space and inserts, the one that made it. */
typedef struct imbrex_space_s* imbrex_space_t;
typedef struct imbrex_data_s* imbrex_data_t; /* lives as long as its space */

enum {
  IMBREX_DATA_READ = 0,
  IMBREX_DATA_WRITE,  /* the value before does not matter */
  IMBREX_DATA_UPDATE, /* reads and writes */
  IMBREX_DATA_REDUCE  /* adds to it by `reduction`, in any order and on any ranks */
};

/* Lives as long as the space; a reduction is known by its address. Both functions are for `count`
   elements that lie one after the other. */
typedef struct {
  void (*combine)(void* into, const void* from, size_t count);
  void (*clear)(void* memory, size_t count); /* sets them to what changes nothing */
} imbrex_data_reduction;

typedef struct {
  imbrex_data_t data;
  int mode;
  const imbrex_data_reduction* reduction; /* of IMBREX_DATA_REDUCE */
} imbrex_data_access;

/* What a body sees of a datum: `columns` columns of `rows` elements, `leading` elements from the
   beginning of one to that of the next. An array has one column. */
typedef struct {
  void* memory; /* not to be written, if the task only reads it */
  size_t rows, columns, leading;
} imbrex_data_view;

/* `views`: of the accesses, in their order. Returns 0; else the task has failed. */
typedef int imbrex_data_body(void* argument, const imbrex_data_view* views);

typedef struct {
  const char* name; /* copied, each text once for the whole program, unless `kept` */
  const char* file; /* not copied: a literal, or from imbrex_keep() */
  int line;
  imbrex_data_body* body;
  const void* argument;
  size_t argument_bytes; /* 0: the body gets `argument`; else a copy of so many bytes there */
  int access_count;
  const imbrex_data_access* accesses; /* read by imbrex_data_insert() only */
  int priority;                       /* larger runs first, and its data travel first */
  int on;   /* a rank of the space; -1: the owner of the first datum that it writes */
  int kept; /* 1: `name` is a literal, or from imbrex_keep() */
} imbrex_data_task_spec;

/* Initialises a spec; the other fields are 0. */
#define IMBREX_DATA_TASK(task_name, task_body)                                          \
  { .name = (task_name), .file = __FILE__, .line = __LINE__, .body = (task_body),       \
    .argument = NULL, .argument_bytes = 0, .access_count = 0, .accesses = NULL,         \
    .priority = 0, .on = -1, .kept = IMBREX_IS_LITERAL(task_name) }

typedef struct {
  const char* name; /* for messages; copied; null: "space" */
  int64_t window;   /* tasks of this rank that insert() may be ahead; 0: any number;
                       -1: 4096 */
} imbrex_space_options;

/* Collective. Suspends until all ranks have come as far, and frees the space and its data. What has
   failed since the last finish is printed, and fails the process. */
int imbrex_space_free(imbrex_space_t* space);
int imbrex_space_rank(imbrex_space_t space);
int imbrex_space_size(imbrex_space_t space);

/* Every rank makes the same data in the same order. `owner`: a rank of the space; -1: whoever
   writes it first, and then `memory` is null. `memory` counts on the owner only: it stays until the
   space is freed, and its contents are the first value; null: the runtime's, zero at first.
   `leading` 0: `rows`. `name`, for messages, may be null. */
int imbrex_data_create(imbrex_space_t space, int owner, size_t rows, size_t columns,
                       size_t element_bytes, void* memory, size_t leading, const char* name,
                       imbrex_data_t* data);
int imbrex_data_owner(imbrex_data_t data); /* as of what has been inserted; -1: nobody */

/* Every rank inserts the same sequence; the body runs on one. Suspends, if this rank is a window of
   tasks ahead of what has run. */
int imbrex_data_insert(imbrex_space_t space, const imbrex_data_task_spec* spec);
/* 0: this rank may leave out the insertion, if it asks for each task in turn, and if all tasks that
   write a datum run on its owner; 1: it may not; -1: the spec is wrong. */
int imbrex_data_concerns(imbrex_space_t space, const imbrex_data_task_spec* spec);
/* Part of the sequence, as tasks are. */
int imbrex_data_flush(imbrex_data_t data, const char* file, int line);
int imbrex_data_discard(imbrex_data_t data, const char* file, int line);
int imbrex_data_move(imbrex_data_t data, int owner, const char* file, int line);

/* Collective. Suspends until all that was inserted has run. IMBREX_ERR_TASK: a task has failed, on
   whatever rank. */
int imbrex_space_finish(imbrex_space_t space);
/* After a finish, on the owner: where its value is. */
int imbrex_data_get(imbrex_data_t data, imbrex_data_view* view);

/* ---- what imbrex_space_create() of data.h is made of ---- */

/* IMBREX_ERR_USE: messages between ranks are not open. */
int imbrex_space_check(void);
int imbrex_space_open(uint64_t id, int ranks, const int world[], const int nodes[],
                      const imbrex_space_options* options, imbrex_space_t* space);
/* Fails with IMBREX_ERR_USE, for a reason that imbrex_message() then tells. */
int imbrex_space_refuse(const char* why);

#ifdef __cplusplus
}
#endif
#endif
