/* SPDX-License-Identifier: BSD-3-Clause */
/* What imbrex adds to MPI for C programs: requests, for tasks. Plain blocking calls need nothing of
   this: in a task they suspend the task. Codes and messages as in imbrex.h. */
#ifndef IMBREX_MPI_H
#define IMBREX_MPI_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "imbrex/imbrex.h"

#ifndef IMBREX_SERIAL
#include "imbrex/distributed/ranks.h" /* imbrex_open_messages() */

#ifdef __cplusplus
extern "C" {
#endif

/* Suspends the running task until the request is complete, as MPI_Wait. `status` may be
   MPI_STATUS_IGNORE. */
int imbrex_await_request(MPI_Request* request, MPI_Status* status);
/* Takes the request over, which becomes MPI_REQUEST_NULL, and returns at once: a future of one
   MPI_Status. Not for persistent requests. */
int imbrex_when_request(MPI_Request* request, imbrex_future_t* future);
/* The same without a future: the running task, once its body has ended, keeps its dependents
   waiting for the request too. */
int imbrex_release_after_request(MPI_Request* request);

/* Collectives of tasks that run at the same time: those that the calling task starts from the
   beginning of a scope to its end start in an order that all ranks share, as by imbrex::ordered()
   and imbrex::ordered_as_spawned() of <imbrex/mpi.hpp>, which says how. Scopes are brackets: ended
   by the task that began them, the last one first. */
int imbrex_ordered_begin(uint64_t key);
int imbrex_ordered_begin_by_name(const char* name);
int imbrex_ordered_begin_as_spawned(const void* object, int count);
int imbrex_ordered_end(void);

/* Partial collectives: <imbrex/collective.hpp> says what all of it means. Its functions, without
   their exceptions. `counts`, `displacements` and `types` are null, or have an element for each
   rank. */
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
  imbrex_piece (*outgoing)(void* argument, int rank, int part); /* may be null, as may the next */
  imbrex_piece (*incoming)(void* argument, int rank, int part);
  void* argument; /* of both */
} imbrex_collective_options; /* null where it is wanted: all of it 0 */
typedef struct imbrex_collective_s* imbrex_collective_t;
/* These begin a collective, and return at once: `made` is to be freed. `options` may be null. May
   suspend, the first time on a communicator. IMBREX_ERR_USE: wrong arguments; IMBREX_ERR_MPI. */
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
/* On a communicator with a topology. `counts`, `displacements` and `types` have an element for each
   source or destination, and where the functions below take a rank they take its index. */
int imbrex_neighbor_alltoall(const imbrex_send_blocks* send, const imbrex_receive_blocks* receive,
                             MPI_Comm comm, const imbrex_collective_options* options,
                             imbrex_collective_t* made);
int imbrex_neighbor_allgather(const imbrex_send_blocks* send, const imbrex_receive_blocks* receive,
                              MPI_Comm comm, const imbrex_collective_options* options,
                              imbrex_collective_t* made);
/* A future without a value each, to be freed; an access IMBREX_AFTER names one. */
int imbrex_collective_from(imbrex_collective_t it, int rank, int part, imbrex_future_t* future);
int imbrex_collective_to(imbrex_collective_t it, int rank, int part, imbrex_future_t* future);
int imbrex_collective_all(imbrex_collective_t it, imbrex_future_t* future);
int imbrex_collective_send(imbrex_collective_t it, int rank, int part);
/* As imbrex::release_by_blocks() of collective.hpp. */
int imbrex_release_by_blocks(void);
/* How many calls of this process have gone block by block (IMBREX_PARTIAL). */
unsigned long long imbrex_decomposed_calls(void);
/* The program lets go of it, which goes on. Nobody uses it at that time, or afterwards. */
void imbrex_collective_free(imbrex_collective_t* it);

#ifdef __cplusplus
}
#endif
#endif
#endif
