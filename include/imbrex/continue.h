/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI continuations on any MPI, for programs and runtimes in C, C++ and other languages: imbrex
   calls a function once a request is complete. No task and no worker of imbrex is needed. The
   threads that make progress are those that call imbrex_progress(), the main thread while it waits
   in MPI, and idle workers. (A program with threads of its own and no tasks sets IMBREX_WORKERS=1.)

   Any thread may call every function between MPI_Init and MPI_Finalize. No function suspends. */
#ifndef IMBREX_CONTINUE_H
#define IMBREX_CONTINUE_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* imbrex calls the function once, in the thread that has found the completion; never within
   imbrex_continue(), and never within another continuation of that thread. `code` is the result
   that MPI_Wait or MPI_Waitall would have returned, after the communicator's error handler.
   `statuses` has `count` elements and lives until the function returns.

   The function may start operations, ask for more continuations, launch tasks, and take locks
   that no thread holds while it calls imbrex or MPI. It must not wait, because its thread may
   have other completions to deliver. */
typedef void imbrex_continuation(int code, int count, const MPI_Status* statuses, void* argument);

/* Takes the request over and sets it to MPI_REQUEST_NULL. The buffer belongs to MPI until the
   continuation is called. A null request is complete.

   Returns MPI_SUCCESS; or an error code, and changes nothing: MPI_ERR_REQUEST for a persistent
   request, MPI_ERR_OTHER outside of MPI_Init and MPI_Finalize. A message on standard error says
   what is wrong. Some MPIs show only at completion that a request is persistent: the request is
   then freed, and the continuation gets MPI_ERR_REQUEST. */
int imbrex_continue(MPI_Request* request, imbrex_continuation* function, void* argument);

/* Takes several requests over; imbrex calls the function once, when all are complete. `code` is
   MPI_ERR_IN_STATUS if a request has failed; the statuses say which. Codes as for
   imbrex_continue(). */
int imbrex_continue_all(int count, MPI_Request requests[], imbrex_continuation* function,
                        void* argument);

/* Asks MPI once for the completion of all requests in flight, unless another thread does so now,
   and calls the continuations of complete requests. Returns the number of operations that it has
   found complete. Within a continuation it does nothing, and prints a message on standard error. */
int imbrex_progress(void);

#ifdef __cplusplus
}
#endif
#endif
