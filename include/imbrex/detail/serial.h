/* SPDX-License-Identifier: BSD-3-Clause */
/* imbrex.h under IMBREX_SERIAL: a program written for tasks, named events and progress functions
   runs without the runtime. A task is a plain call at the place of its spawn, so the events that
   it names must have fired before, by the program's noprogress path. Only the functions below
   exist: events, promises and requests have no meaning without concurrent work. */
#ifndef IMBREX_DETAIL_SERIAL_H
#define IMBREX_DETAIL_SERIAL_H

#include <stdlib.h>
#include <string.h>

struct imbrex_future_s {
  int code;
  int dropped; /* its finish was told to stop before */
  size_t size;
  /* the bytes follow */
};

/* Tasks of this file's finish that have failed. */
static int imbrex_serial_failures;

/* How many finishes are open here, and the outermost one that was told to stop; 0: none. */
static int imbrex_serial_open;
static int imbrex_serial_stopped;
static uint64_t imbrex_serial_on_error; /* a bit for each of the first 64: a failure stops it */

/* The loop whose tasks run, and the running task. Bodies of tasks may be in other files than the
   loop, so the program has one object. */
struct imbrex_serial_loop {
  int64_t iteration; /* -1: there is no loop */
  int stopped;
  int decides; /* the running task does */
};
#ifdef __GNUC__
__attribute__((weak))
#else
static
#endif
struct imbrex_serial_loop imbrex_serial_loop = {-1, 0, 0};

static inline const char* imbrex_message(void) { return "imbrex: the body of a task failed"; }
static inline const char* imbrex_keep(const char* text) { return text; }
/* no library has a version here */
static inline const char* imbrex_version(void) { return "serial"; }

static inline int imbrex_spawn(const imbrex_task_spec* spec, imbrex_future_t* future) {
  imbrex_future_t made =
      (imbrex_future_t)calloc(1, sizeof(struct imbrex_future_s) + spec->result_bytes);
  void* copy = spec->argument_bytes != 0 ? malloc(spec->argument_bytes) : NULL;
  const int decides = imbrex_serial_loop.decides;
  if (made == NULL || (copy == NULL && spec->argument_bytes != 0)) {
    free(made);
    free(copy);
    return IMBREX_ERR_MEMORY;
  }
  if (copy != NULL) memcpy(copy, spec->argument, spec->argument_bytes);
  made->size = spec->result_bytes;
  made->dropped = imbrex_serial_stopped != 0 && !spec->run_after_failure;
  if (!made->dropped) {
    imbrex_serial_loop.decides = spec->decides;
    made->code = spec->body(copy != NULL ? copy : (void*)(uintptr_t)spec->argument,
                            made->size != 0 ? made + 1 : NULL);
    imbrex_serial_loop.decides = decides;
    if (made->code != 0) {
      ++imbrex_serial_failures;
      if (imbrex_serial_stopped == 0 && imbrex_serial_open >= 1 && imbrex_serial_open <= 64 &&
          (imbrex_serial_on_error >> (imbrex_serial_open - 1) & 1) != 0) {
        imbrex_serial_stopped = imbrex_serial_open;
      }
    }
  }
  free(copy);
  if (future != NULL) {
    *future = made;
  } else {
    free(made);
  }
  return IMBREX_SUCCESS;
}
static inline int imbrex_spawn_at(const imbrex_task_spec* spec, int place,
                                  imbrex_future_t* future) {
  (void)place;
  return imbrex_spawn(spec, future);
}
static inline int imbrex_place_count(void) { return 1; }
static inline const char* imbrex_place_name(int place) { return place == 0 ? "serial" : NULL; }
static inline int imbrex_current_place(void) { return -1; }
static inline int imbrex_local_place(void) { return 0; }
static inline int imbrex_current_worker(void) { return 0; }
static inline int imbrex_parent_place(void) { return -1; }
static inline int imbrex_place_parent(int place) { return place == -1 || place == 0 ? -1 : -2; }
static inline int imbrex_place_level(int place) {
  return place == -1 || place == 0 ? place + 1 : -1;
}
static inline int imbrex_place_kind(int place) {
  return place == -1 || place == 0 ? IMBREX_PLACE_MEMORY : -1;
}
static inline int imbrex_place_children(int place, int* children, int count) {
  if (place != -1) return place == 0 ? 0 : -1;
  if (count > 0) children[0] = 0;
  return 1;
}
static inline int imbrex_release(const void* object) {
  (void)object;
  return IMBREX_SUCCESS;
}
static inline int imbrex_release_range(const void* begin, size_t bytes) {
  (void)begin, (void)bytes;
  return IMBREX_SUCCESS;
}
static inline int imbrex_finish_begin_stoppable(imbrex_finish_t* finish, int on_error,
                                                const char* file, int line) {
  (void)file, (void)line;
  ++imbrex_serial_open;
  if (imbrex_serial_open <= 64) {
    const uint64_t bit = (uint64_t)1 << (imbrex_serial_open - 1);
    if (on_error) {
      imbrex_serial_on_error |= bit;
    } else {
      imbrex_serial_on_error &= ~bit;
    }
  }
  *finish = (imbrex_finish_t)(uintptr_t)imbrex_serial_open;
  return IMBREX_SUCCESS;
}
static inline int imbrex_finish_begin(imbrex_finish_t* finish, const char* file, int line) {
  return imbrex_finish_begin_stoppable(finish, 0, file, line);
}
static inline int imbrex_request_stop(imbrex_finish_t finish) {
  const int number = (int)(uintptr_t)finish;
  if (imbrex_serial_stopped == 0 || number < imbrex_serial_stopped) imbrex_serial_stopped = number;
  return IMBREX_SUCCESS;
}
static inline int imbrex_stop_requested(void) { return imbrex_serial_stopped != 0; }
static inline int imbrex_finish_end(imbrex_finish_t* finish) {
  if (*finish != NULL) {
    if (imbrex_serial_stopped == imbrex_serial_open) imbrex_serial_stopped = 0;
    --imbrex_serial_open;
  }
  *finish = NULL;
  if (imbrex_serial_failures == 0) return IMBREX_SUCCESS;
  imbrex_serial_failures = 0;
  return IMBREX_ERR_TASK;
}
static inline int imbrex_iterate(int64_t count, int64_t period,
                                 int (*body)(void* argument, int64_t iteration), void* argument,
                                 const char* file, int line) {
  const struct imbrex_serial_loop outer = imbrex_serial_loop;
  const int failures = imbrex_serial_failures;
  int code = body != NULL && period >= 1 ? IMBREX_SUCCESS : IMBREX_ERR_USE;
  (void)file, (void)line;
  imbrex_serial_loop.stopped = imbrex_serial_loop.decides = 0;
  imbrex_serial_failures = 0;
  for (int64_t i = 0; i < count && code == IMBREX_SUCCESS && !imbrex_serial_loop.stopped; ++i) {
    imbrex_serial_loop.iteration = i;
    if (body(argument, i) != IMBREX_SUCCESS) code = IMBREX_ERR_USE;
    if (imbrex_serial_failures != 0) code = IMBREX_ERR_TASK;
  }
  imbrex_serial_loop = outer;
  imbrex_serial_failures = failures;
  return code;
}
static inline int64_t imbrex_iteration(void) { return imbrex_serial_loop.iteration; }
static inline int imbrex_stop_iterating(void) {
  if (!imbrex_serial_loop.decides || imbrex_serial_loop.iteration < 0) return IMBREX_ERR_USE;
  imbrex_serial_loop.stopped = 1;
  return IMBREX_SUCCESS;
}
static inline int imbrex_taskwait(void) { return IMBREX_SUCCESS; }
static inline int imbrex_yield(void) { return IMBREX_SUCCESS; }

static inline int imbrex_future_wait(imbrex_future_t future) {
  if (future->dropped) return IMBREX_ERR_CANCELLED;
  return future->code == 0 ? IMBREX_SUCCESS : IMBREX_ERR_TASK;
}
static inline int imbrex_future_get(imbrex_future_t future, void* value, size_t bytes) {
  if (bytes != future->size) return IMBREX_ERR_USE;
  if (future->dropped) return IMBREX_ERR_CANCELLED;
  if (future->code != 0) return IMBREX_ERR_TASK;
  if (bytes != 0) memcpy(value, future + 1, bytes);
  return IMBREX_SUCCESS;
}
static inline int imbrex_future_ready(imbrex_future_t future) { return future != NULL; }
static inline void imbrex_future_free(imbrex_future_t* future) {
  free(*future);
  *future = NULL;
}

static inline int imbrex_trigger(const char* name, int64_t number) {
  (void)name, (void)number;
  return IMBREX_SUCCESS;
}
static inline int imbrex_progress_register(int (*function)(void*), void* argument,
                                           const char* file, int line) {
  (void)function, (void)argument, (void)file, (void)line;
  return IMBREX_SUCCESS;
}
static inline int imbrex_noprogress(void) { return 1; }

#endif
