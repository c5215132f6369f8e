/* SPDX-License-Identifier: BSD-3-Clause */
/* What MPI knows and does not tell, as events (after Castillo et al., ICS 2019, section 3.1): a
   message has arrived, a non-blocking send is complete. For runtimes in any language; they are
   polled, or given to a handler. Needs no task and no worker of imbrex.

   Every function may be called by any thread between MPI_Init and MPI_Finalize, but by none in a
   handler. */
#ifndef IMBREX_EVENTS_H
#define IMBREX_EVENTS_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  /* A message is here, or of a long one the announcement. `request` is the MPI_Irecv that gets it;
     null if nobody waits for it yet, or if a blocking or persistent receive does. */
  IMBREX_INCOMING_PTP = 1,
  /* The MPI_Isend, _Issend, _Irsend or _Ibsend that gave `request` is complete. */
  IMBREX_OUTGOING_PTP = 2
};

typedef struct {
  int kind;
  MPI_Comm comm;
  int peer; /* the source, or the destination, in ranks of `comm` (of its remote group) */
  int tag;
  MPI_Request request;
} imbrex_event;

/* From now on the messages and sends of `comm` are events, until imbrex_events_end(), which must
   come before the communicator is freed and before MPI_Finalize. Receives that MPI has already are
   none of them. imbrex matches the receives of this communicator itself: returns
   MPI_ERR_UNSUPPORTED_OPERATION, and says why on standard error, where that cannot be (the
   communicator asserts that it uses no wildcards; IMBREX_MATCH_ABOVE forbids it). */
int imbrex_events_begin(MPI_Comm comm);
int imbrex_events_end(MPI_Comm comm);

/* 1, and the oldest event that nobody has taken; 0 if there is none. Makes progress. */
int imbrex_event_poll(imbrex_event* event);

/* From now on each event is given to the handler as soon as a thread learns of it: one that calls
   imbrex_event_poll() or imbrex_progress(), the main thread while it waits in MPI, an idle worker.
   Null: events are kept for imbrex_event_poll() again. Handlers of several threads may run at once.

   Three things a handler may not do. It may not take a lock that a thread holds while it calls MPI
   or imbrex; imbrex holds none of its own then. It may not call MPI, nor wait: such a call returns
   MPI_ERR_OTHER, and is named on standard error. Handlers are never nested. It may mark what is
   ready, launch tasks, fire imbrex::Event. */
typedef void imbrex_event_handler(const imbrex_event* event, void* argument);
void imbrex_event_set_handler(imbrex_event_handler* handler, void* argument);

#ifdef __cplusplus
}
#endif
#endif
