/* SPDX-License-Identifier: BSD-3-Clause */
/* What MPI knows and does not tell, as events (after Castillo et al., ICS 2019, sections 3.1 and
   3.4): a message has arrived, a non-blocking send is complete, a block of a collective is here or
   has left. For runtimes in any language; they are polled, or given to a handler. Needs no task and
   no worker of imbrex.

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
  IMBREX_OUTGOING_PTP = 2,
  /* A part of a block of a partial collective (<imbrex/collective.hpp>), or a block of one of MPI's
     own calls that goes block by block (IMBREX_PARTIAL, docs/user/partial-collectives.md), is here
     and may be read; or it has failed. Of an allreduce: the result of this part. */
  IMBREX_COLLECTIVE_PARTIAL_INCOMING = 3,
  /* It has left, and may be overwritten; or it has failed. */
  IMBREX_COLLECTIVE_PARTIAL_OUTGOING = 4
};

typedef struct {
  int kind;
  MPI_Comm comm;
  /* The source, or the destination, in ranks of `comm` (of its remote group). Of a part, too; in a
     broadcast the rank before or after this one in its chain, in an allreduce this rank. */
  int peer;
  int tag;             /* of a part MPI_ANY_TAG */
  MPI_Request request; /* of a part null */
  /* MPI_SUCCESS, or what the send or the part has failed with: MPI's code, or MPI_ERR_OTHER for a
     part that is never sent. Of messages MPI_SUCCESS: their receive has the code. */
  int code;
  /* The rest is of parts; of messages and sends it is -1 and null. */
  int block;           /* peer; but in a collective of neighbours the index of the neighbour */
  int part;            /* of the block, from 0 */
  const void* address; /* its first byte, in the buffer that the program has given */
  const char* call;    /* "MPI_Alltoall"; "imbrex::alltoall", or the name given in its options */
} imbrex_event;

/* From now on the messages and sends of `comm` are events, until imbrex_events_end(), which must
   come before the communicator is freed and before MPI_Finalize. Receives that MPI has already are
   none of them. So are the parts that end from now on, whenever their collective was begun: each
   that has bytes once, also of a block from this rank to itself. Its future is ready by then. When
   all() is ready, or the call of MPI has returned (of an I form: its request is complete), all its
   events are in the queue, or their handlers have returned; but of a part that ends within a
   handler or a continuation, the handler runs after that one.

   imbrex matches the receives of this communicator itself: returns MPI_ERR_UNSUPPORTED_OPERATION,
   and says why on standard error, where that cannot be (the communicator asserts that it uses no
   wildcards; IMBREX_MATCH_ABOVE forbids it). */
int imbrex_events_begin(MPI_Comm comm);
int imbrex_events_end(MPI_Comm comm);

/* 1, and the oldest event that nobody has taken; 0 if there is none. Makes progress. */
int imbrex_event_poll(imbrex_event* event);

/* From now on each event is given to the handler as soon as a thread learns of it: one that calls
   imbrex_event_poll() or imbrex_progress(), the main thread while it waits in MPI, an idle worker;
   or that lets a part go to this rank itself.
   Null: events are kept for imbrex_event_poll() again. Handlers of several threads may run at once.

   Three things a handler may not do. It may not take a lock that a thread holds while it calls MPI
   or imbrex; imbrex holds none of its own then. It may not call MPI, nor wait: such a call returns
   MPI_ERR_OTHER, and is named on standard error. Handlers are never nested. It may mark what is
   ready, launch tasks, set an imbrex::Promise. */
typedef void imbrex_event_handler(const imbrex_event* event, void* argument);
/* Gives each event to `handler`, as said above; null: to nobody. */
void imbrex_event_set_handler(imbrex_event_handler* handler, void* argument);

#ifdef __cplusplus
}
#endif
#endif
