/* SPDX-License-Identifier: BSD-3-Clause
   A tool by OMPT: how many tasks an OpenMP program creates, and how often a task lets another one
   run on its thread while it waits in MPI. */
#include <omp-tools.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_long threads, regions, tasks, waits;

static void thread_begin(ompt_thread_t kind, ompt_data_t* thread) {
  (void)kind, (void)thread;
  ++threads;
}
static void parallel_begin(ompt_data_t* task, const ompt_frame_t* frame, ompt_data_t* region,
                           unsigned requested, int flags, const void* code) {
  (void)task, (void)frame, (void)region, (void)requested, (void)flags, (void)code;
  ++regions;
}
static void task_create(ompt_data_t* creator, const ompt_frame_t* frame, ompt_data_t* task,
                        int flags, int has_dependences, const void* code) {
  (void)creator, (void)frame, (void)task, (void)has_dependences, (void)code;
  if ((flags & ompt_task_explicit) != 0) ++tasks;
}
static void task_schedule(ompt_data_t* prior, ompt_task_status_t status, ompt_data_t* next) {
  (void)prior, (void)next;
  if (status == ompt_task_yield) ++waits;
}

static int begin(ompt_function_lookup_t lookup, int device, ompt_data_t* tool) {
  (void)device, (void)tool;
  ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
  set(ompt_callback_thread_begin, (ompt_callback_t)thread_begin);
  set(ompt_callback_parallel_begin, (ompt_callback_t)parallel_begin);
  set(ompt_callback_task_create, (ompt_callback_t)task_create);
  set(ompt_callback_task_schedule, (ompt_callback_t)task_schedule);
  return 1; /* 0: the tool does not want to hear of anything */
}
static void end(ompt_data_t* tool) {
  (void)tool;
  printf("tool: %ld threads, %ld regions, %ld tasks, %ld waits in which another task ran\n",
         threads, regions, tasks, waits);
}

ompt_start_tool_result_t* ompt_start_tool(unsigned version, const char* runtime) {
  static ompt_start_tool_result_t tool = {begin, end, {0}};
  (void)version, (void)runtime;
  return &tool;
}
