/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that imbrex adds to MPI for C programs: requests, for tasks. Plain blocking
   calls need no function of this header: in a task they suspend the task. Codes and messages as
   in imbrex.h. Any thread may call every function. */
#ifndef IMBREX_MPI_H
#define IMBREX_MPI_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "imbrex/imbrex.h"

#ifndef IMBREX_SERIAL
#ifdef __cplusplus
extern "C" {
#endif

/* For a program that loads imbrex at run time, with dlopen: imbrex serves the calls of MPI from
   MPI_Init on, or at once if MPI has been initialised; then the call is collective over
   MPI_COMM_WORLD, and MPI must have the level MPI_THREAD_MULTIPLE. A second call does nothing.
   Never suspends. */
int imbrex_attach(void);
/* Suspends the running task until the request is complete, as MPI_Wait would wait. `status` may
   be MPI_STATUS_IGNORE. */
int imbrex_await_request(MPI_Request* request, MPI_Status* status);
/* Takes the request over, which becomes MPI_REQUEST_NULL, and returns at once: `future` holds
   one MPI_Status. Not for persistent requests. */
int imbrex_when_request(MPI_Request* request, imbrex_future_t* future);
/* Takes the request over and returns at once. The running task, once its body has ended, keeps
   its dependents waiting for the request, too. */
int imbrex_release_after_request(MPI_Request* request);

/* Collectives of tasks that run at the same time: the collectives that the calling task starts
   in the scope start in an order that all ranks share. imbrex::order_collectives() and
   imbrex::order_collectives_as_spawned() of <imbrex/mpi.hpp> explain the two orders. Scopes nest
   like brackets: the task that began a scope ends it, the last one first. Only the collectives in a
   scope suspend, not these functions. IMBREX_ERR_USE: a `count` below 1, or an end without a
   beginning. */
int imbrex_collective_order_begin(uint64_t key);
int imbrex_collective_order_begin_by_name(const char* name);
int imbrex_collective_order_begin_as_spawned(const void* object, int count);
int imbrex_collective_order_end(void);

/* Partial collectives; <imbrex/collective.hpp> explains them. The functions report errors by
   codes instead of exceptions. `counts`, `displacements` and `types` are null, or have an
   element for each rank. */
typedef struct {
  const void* address;
  int count;
  MPI_Datatype type;
  const int* counts;
  const int* displacements;
  const MPI_Datatype* types;
} imbrex_send_blocks;
typedef struct {
  void* address;
  int count;
  MPI_Datatype type;
  const int* counts;
  const int* displacements;
  const MPI_Datatype* types;
} imbrex_receive_blocks;
typedef struct {
  ptrdiff_t displacement;
  int count;
  MPI_Datatype type;
} imbrex_piece;
typedef struct {
  int parts; /* 0 stands for 1 */
  int hold;  /* 0 or 1 */
  imbrex_piece (*outgoing)(void* argument, int rank, int part); /* may be null, as may `incoming` */
  imbrex_piece (*incoming)(void* argument, int rank, int part);
  void* argument; /* for both functions */
} imbrex_collective_options; /* a null pointer to the options stands for all fields 0 */
typedef struct imbrex_collective_s* imbrex_collective_t;
/* The functions below begin a collective, and return at once; the program frees `made`.
   `options` may be null. The first call on a communicator suspends. IMBREX_ERR_USE: wrong
   arguments; IMBREX_ERR_MPI: MPI has failed. */
int imbrex_alltoall(const imbrex_send_blocks* send, const imbrex_receive_blocks* receive,
                    MPI_Comm comm, const imbrex_collective_options* options,
                    imbrex_collective_t* made);
int imbrex_allgather(const imbrex_send_blocks* send, const imbrex_receive_blocks* receive,
                     MPI_Comm comm, const imbrex_collective_options* options,
                     imbrex_collective_t* made);
int imbrex_gather(const imbrex_send_blocks* send, const imbrex_receive_blocks* receive, int root,
                  MPI_Comm comm, const imbrex_collective_options* options,
                  imbrex_collective_t* made);
int imbrex_scatter(const imbrex_send_blocks* send, const imbrex_receive_blocks* receive, int root,
                   MPI_Comm comm, const imbrex_collective_options* options,
                   imbrex_collective_t* made);
int imbrex_broadcast(const imbrex_receive_blocks* data, int root, MPI_Comm comm,
                     const imbrex_collective_options* options, imbrex_collective_t* made);
int imbrex_allreduce(const imbrex_send_blocks* send, const imbrex_receive_blocks* receive,
                     MPI_Op op, MPI_Comm comm, const imbrex_collective_options* options,
                     imbrex_collective_t* made);
/* Neighbourhood collectives, on a communicator with a topology. `counts`, `displacements` and
   `types` have an element for each source or destination. The functions below take the index of
   a neighbour in place of a rank. */
int imbrex_neighbor_alltoall(const imbrex_send_blocks* send, const imbrex_receive_blocks* receive,
                             MPI_Comm comm, const imbrex_collective_options* options,
                             imbrex_collective_t* made);
int imbrex_neighbor_allgather(const imbrex_send_blocks* send, const imbrex_receive_blocks* receive,
                              MPI_Comm comm, const imbrex_collective_options* options,
                              imbrex_collective_t* made);
/* The next three make a future without a value, which the program frees; an access IMBREX_AFTER
   names such a future. imbrex_collective_send() sends a part that `hold` has kept. Never suspend.
   IMBREX_ERR_USE: there is no such rank or part, or the part was sent before. */
int imbrex_collective_from(imbrex_collective_t it, int rank, int part, imbrex_future_t* future);
int imbrex_collective_to(imbrex_collective_t it, int rank, int part, imbrex_future_t* future);
int imbrex_collective_all(imbrex_collective_t it, imbrex_future_t* future);
int imbrex_collective_send(imbrex_collective_t it, int rank, int part);
/* imbrex::release_by_blocks() of collective.hpp. Never suspends. */
int imbrex_release_by_blocks(void);
/* Number of calls of this process that have gone block by block (IMBREX_PARTIAL). */
unsigned long long imbrex_decomposed_calls(void);
/* Frees the handle; the collective goes on. No other thread may use the handle during the call
   or afterwards. */
void imbrex_collective_free(imbrex_collective_t* it);

#ifdef __cplusplus
}
#endif
#endif
#endif
