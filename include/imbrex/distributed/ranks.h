/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of an object that is made on a communicator: all that data.h, data.hpp,
   future_space.hpp and work_pool.hpp need of MPI. The functions are C in a header, so that the
   program's own MPI is called. Included by these headers. */
#ifndef IMBREX_DISTRIBUTED_RANKS_H
#define IMBREX_DISTRIBUTED_RANKS_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Before MPI_Init: MPI_Init shall open messages between the ranks of MPI_COMM_WORLD, if one rank
   says so. Later it does nothing. Any thread; never suspends. */
void imbrex_open_messages_at_init(void);
/* Returns a number that no other rank returns, while messages are open. Any thread; never
   suspends. */
uint64_t imbrex_new_id(void);
#ifdef __cplusplus
}
#endif

/* A program that includes this file needs messages. */
__attribute__((constructor)) static void imbrex_needs_messages(void) {
  imbrex_open_messages_at_init();
}

/* Translates `count` ranks of `comm`, an intra-communicator, to ranks of MPI_COMM_WORLD: below 0
   where MPI_COMM_WORLD has no such rank. Any thread; never suspends. */
static inline void imbrex_world_ranks(MPI_Comm comm, int count, const int* ranks, int* world) {
  MPI_Group group, all;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_translate_ranks(group, count, ranks, all, world);
  MPI_Group_free(&group);
  MPI_Group_free(&all);
}

/* Collective over `comm`, an intra-communicator, while messages are open. Suspends. world[rank]
   is the rank in MPI_COMM_WORLD of each rank of `comm`; nodes[rank] is the first rank on its
   node. Null `nodes`: no nodes are found. Returns a number that is the same on all ranks, and
   different for each call. */
static inline uint64_t imbrex_members(MPI_Comm comm, int* world, int* nodes) {
  uint64_t id = 0;
  int rank = 0, size = 0;
  int* ranks;
  MPI_Group group;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_group(comm, &group); /* MPI_Comm_size counts the ranks of a simulation */
  MPI_Group_size(group, &size);
  MPI_Group_free(&group);
  if (rank == 0) id = imbrex_new_id();
  MPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm);
  ranks = (int*)malloc((size_t)size * sizeof(int));
  if (ranks == NULL) abort(); /* the other ranks would wait for ever */
  for (int i = 0; i < size; ++i) ranks[i] = i;
  imbrex_world_ranks(comm, size, ranks, world);
  free(ranks);
  if (nodes != NULL) {
    MPI_Comm node;
    int first = rank;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Bcast(&first, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    MPI_Allgather(&first, 1, MPI_INT, nodes, 1, MPI_INT, comm);
  }
  return id;
}

#endif
