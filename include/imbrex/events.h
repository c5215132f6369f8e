/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that MPI knows and does not tell (after Castillo et al., ICS 2019, sections 3.1 and 3.4):
   a message has arrived, a non-blocking send is complete, a block of a collective has arrived or
   has left. For runtimes in any language, which poll the events or set a handler. No task and no
   worker of imbrex is needed.

   Any thread may call every function between MPI_Init and MPI_Finalize, but not in a handler. No
   function suspends. */
#ifndef IMBREX_EVENTS_H
#define IMBREX_EVENTS_H

#include <mpi.h>

#include "imbrex/imbrex.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  /* A message, or the announcement of a long one, has arrived. `request` is the MPI_Irecv that
     gets it; null if no receive is posted, or if a blocking or persistent receive gets it. */
  IMBREX_INCOMING_PTP = 1,
  /* The MPI_Isend, MPI_Issend, MPI_Irsend or MPI_Ibsend that gave `request` is complete. */
  IMBREX_OUTGOING_PTP = 2,
  /* A part of a block of a partial collective (<imbrex/collective.hpp>), or a block of an MPI
     call that goes block by block (IMBREX_PARTIAL, docs/user/partial-collectives.md), has
     arrived and may be read; or it has failed. For an allreduce: the result of this part is
     here. */
  IMBREX_COLLECTIVE_PARTIAL_INCOMING = 3,
  /* A part or a block has left, and may be overwritten; or it has failed. */
  IMBREX_COLLECTIVE_PARTIAL_OUTGOING = 4
};

typedef struct {
  int kind;
  MPI_Comm comm;
  /* The source or the destination, a rank of `comm` (of the remote group of an
     intercommunicator). For a part of a broadcast: the rank before or after this one in the
     chain. For an allreduce: this rank. */
  int peer;
  int tag;             /* MPI_ANY_TAG for a part */
  MPI_Request request; /* null for a part */
  /* MPI_SUCCESS, or the error code of the send or the part; MPI_ERR_OTHER for a part that is
     never sent. Always MPI_SUCCESS for a message: its receive has the code. */
  int code;
  /* The fields below describe parts; for messages and sends they are -1 and null. */
  int block;           /* the peer; in a neighbourhood collective the index of the neighbour */
  int part;            /* part of the block, from 0 */
  const void* address; /* first byte, in the program's buffer */
  const char* call;    /* "MPI_Alltoall"; "imbrex::alltoall", or the name given in its options */
} imbrex_mpi_event;

/* From this call until imbrex_mpi_events_end(), messages and sends of `comm` are events.
   imbrex_mpi_events_end() must come before the communicator is freed and before MPI_Finalize.
   Receives that MPI has already are no events.

   The end of each part that has bytes is an event, too, whenever its collective was begun, also for
   a block from this rank to itself. The part's future is ready by then. When all() is ready, or the
   MPI call has returned (I form: its request is complete), all its events are in the queue or their
   handlers have returned. A part that ends within a handler or a continuation is an exception: its
   handler runs after that function.

   imbrex matches the receives of this communicator itself. Both functions return codes of
   <imbrex/imbrex.h>. IMBREX_ERR_USE: imbrex cannot match them, because the communicator asserts
   that it uses no wildcards, or IMBREX_MATCH_ABOVE forbids it; or the call comes outside of
   MPI_Init and MPI_Finalize, or in a handler. */
int imbrex_mpi_events_begin(MPI_Comm comm);
int imbrex_mpi_events_end(MPI_Comm comm);

/* Returns 1 and the oldest event that was not taken, or 0 if there is none. Makes progress. */
int imbrex_mpi_event_poll(imbrex_mpi_event* event);

/* From this call on, each event goes to the handler as soon as a thread finds it. The threads that
   find events are those that call imbrex_mpi_event_poll() or imbrex_progress() or send a part to
   their own rank, the main thread while it waits in MPI, and idle workers. With null, events are
   kept for imbrex_mpi_event_poll() again. Several threads may run handlers at once; handlers are
   never nested.

   A handler must not take a lock that a thread holds while it calls MPI or imbrex (imbrex holds
   no lock while it calls a handler). A handler must not call MPI, and must not wait: such a call
   returns MPI_ERR_OTHER, and a message on standard error names it. A handler may mark work as
   ready, launch tasks, and set an imbrex::Promise. */
typedef void imbrex_mpi_event_handler(const imbrex_mpi_event* event, void* argument);
/* Sets the handler; null: no handler. */
void imbrex_mpi_event_set_handler(imbrex_mpi_event_handler* handler, void* argument);

#ifdef __cplusplus
}
#endif
#endif
