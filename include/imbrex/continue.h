/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI continuations on any MPI, for programs and runtimes in C, C++ and other languages: a function
   that is called once a request is complete. Needs no task and no worker of imbrex: whoever calls
   imbrex_progress(), the main thread while it waits in MPI, and idle workers make progress. (A
   program that has threads of its own and starts no task sets IMBREX_WORKERS=1.)

   Every function may be called by any thread between MPI_Init and MPI_Finalize. */
#ifndef IMBREX_CONTINUE_H
#define IMBREX_CONTINUE_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called once, by the thread that has found the completion, never within imbrex_continue() and
   never within another continuation of the same thread. `code` is what MPI_Wait or MPI_Waitall
   would have returned, after the communicator's error handler; `statuses` has `count` elements and
   lives until the function returns.

   It may start operations, ask for more continuations, launch tasks, take locks that no thread
   holds while it calls imbrex or MPI. It may not wait: the thread may have other completions to
   tell. */
typedef void imbrex_continuation(int code, int count, const MPI_Status* statuses, void* argument);

/* Takes the request over and sets it to MPI_REQUEST_NULL. Its buffer belongs to MPI until the
   continuation is called. A null request is complete. Returns MPI_SUCCESS, else an error and leaves
   all as it was: MPI_ERR_REQUEST for a persistent request, MPI_ERR_OTHER outside of MPI_Init and
   MPI_Finalize; standard error says what is wrong. (That a request is persistent may come to light
   only when it is complete: then it is freed, and the continuation gets MPI_ERR_REQUEST.) */
int imbrex_continue(MPI_Request* request, imbrex_continuation* function, void* argument);

/* The same for several requests: one call when all are complete. `code` is MPI_ERR_IN_STATUS if one
   has failed; the statuses say which. */
int imbrex_continue_all(int count, MPI_Request requests[], imbrex_continuation* function,
                        void* argument);

/* Asks MPI once for all that is under way, unless another thread does so now, and calls the
   continuations of what is complete. Returns how many operations it has found to be complete.
   Within a continuation it does nothing, and says so on standard error. */
int imbrex_progress(void);

#ifdef __cplusplus
}
#endif
#endif
