/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI continuations on any MPI, for programs and runtimes in C, C++ and other languages: imbrex
   calls a function once a request is complete. No task and no worker of imbrex is needed. The
   threads that make progress are those that call imbrex_progress(), the main thread while it waits
   in MPI, and idle workers. (A program with threads of its own and no tasks sets IMBREX_WORKERS=1.)

   Any thread may call every function between MPI_Init and MPI_Finalize. No function suspends.
   Functions return codes of <imbrex/imbrex.h>, unless their comment says otherwise: IMBREX_ERR_USE
   for a null pointer, outside of MPI_Init and MPI_Finalize, and in an event handler. The code of a
   completion is MPI's. */
#ifndef IMBREX_CONTINUE_H
#define IMBREX_CONTINUE_H

#include <mpi.h>
#include <stdint.h>

#include "imbrex/imbrex.h"

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

   IMBREX_ERR_USE: the request is persistent. Some MPIs show only at completion that a request is
   persistent: the request is then freed, and the continuation gets MPI_ERR_REQUEST. */
int imbrex_continue(MPI_Request* request, imbrex_continuation* function, void* argument);

/* Takes several requests over; imbrex calls the function once, when all are complete. `code` is
   MPI_ERR_IN_STATUS if a request has failed; the statuses say which. Returns what
   imbrex_continue() returns. */
int imbrex_continue_all(int count, MPI_Request requests[], imbrex_continuation* function,
                        void* argument);

/* Asks MPI once for the completion of all requests in flight, unless another thread does so now,
   and calls the continuations of complete requests. Returns the number of operations that it has
   found complete. Within a continuation it does nothing, and prints a message on standard error. */
int imbrex_progress(void);

/* Completion queues, for event loops and for languages whose code may not run in any thread: a
   completion is a record in a queue instead of a call. Any thread may call every function, and
   several threads may take from one queue. */
typedef struct imbrex_queue imbrex_queue;

typedef struct imbrex_completion {
  uint64_t tag;      /* as given to imbrex_continue_to() */
  int code;          /* the code that MPI_Wait would have returned */
  MPI_Status status;
  MPI_Message message; /* of imbrex_mprobe_to(), else MPI_MESSAGE_NULL */
} imbrex_completion;

/* Opens a queue. `fd` is readable while the queue holds completions: poll, select and epoll wait
   for it, level-triggered or edge-triggered. The program neither reads nor closes it.
   IMBREX_ERR_USE: the process has no descriptor left. May be called before MPI_Init. */
int imbrex_queue_open(imbrex_queue** queue, int* fd);

/* Takes the request over, as imbrex_continue() does, and sets it to MPI_REQUEST_NULL. One
   completion with this tag arrives in the queue once the request is complete. Returns what
   imbrex_continue() returns; after an error no completion arrives. */
int imbrex_continue_to(imbrex_queue* queue, MPI_Request* request, uint64_t tag);

/* MPI_Mprobe that does not wait: one completion with `tag` arrives once a message of `comm` from
   `source` with `message_tag` is there. Both may be wildcards. The completion has the matched
   message, for MPI_Mrecv or MPI_Imrecv, and its status; or the code of an error, after the
   communicator's error handler. */
int imbrex_mprobe_to(imbrex_queue* queue, int source, int message_tag, MPI_Comm comm,
                     uint64_t tag);

/* Writes up to `n` completions to `out`, in order of their arrival, and returns their number. Does
   not wait and does not call MPI. May return 0 although `fd` was readable. */
int imbrex_queue_take(imbrex_queue* queue, int n, imbrex_completion out[]);

/* As imbrex_queue_take(), but while the queue is empty it asks MPI for completions, for `us`
   microseconds at most. Meanwhile completions do not make `fd` readable, so an event loop that
   expects more completions soon saves a turn for each. Within a continuation it does not ask. */
int imbrex_queue_poll(imbrex_queue* queue, int us, int n, imbrex_completion out[]);

/* Asks MPI to cancel the open requests and probes with this tag. Each completion arrives in any
   case; MPI_Test_cancelled of its status tells whether its operation was cancelled. Too late is no
   error. Takes time in proportion to the number of open operations. */
int imbrex_queue_cancel(imbrex_queue* queue, uint64_t tag);

/* Ends the queue. No other call may use the queue afterwards or meanwhile. Completions that nobody
   has taken are lost. Open requests go on, their buffers belong to MPI until then, and the queue's
   memory and descriptor go with the last of these requests. A null queue is closed. */
int imbrex_queue_close(imbrex_queue* queue);

#ifdef __cplusplus
}
#endif
#endif
