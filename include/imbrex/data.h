/* SPDX-License-Identifier: BSD-3-Clause */
/* Data with owners for C: <imbrex/data.hpp> says what all of it means; dist/data_tasks.h has all
   but what asks MPI. Codes and messages as in imbrex.h. Include this header where it is loaded
   before MPI_Init. */
#ifndef IMBREX_DATA_H
#define IMBREX_DATA_H

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#include "imbrex/dist/data_tasks.h"

__attribute__((constructor)) static void imbrex_space_begins(void) { imbrex_space_want_messages(); }

/* Collective over `comm`, which may be freed afterwards. Suspends. `options` may be null. */
static inline int imbrex_space_create(MPI_Comm comm, const imbrex_space_options* options,
                                      imbrex_space_t* space) {
  int inter = 0, rank = 0, size = 0, first = 0, code = 0;
  uint64_t id = 0;
  int *ranks, *world, *nodes;
  MPI_Group group, all;
  MPI_Comm node;
  MPI_Comm_test_inter(comm, &inter);
  if (inter) return imbrex_space_refuse("an inter-communicator for a space of data");
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (rank == 0) id = imbrex_space_draw_id();
  MPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm);
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  first = rank;
  MPI_Bcast(&first, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  ranks = (int*)malloc(3 * (size_t)size * sizeof(int));
  if (ranks == NULL) abort(); /* the others would wait */
  world = ranks + size;
  nodes = world + size;
  MPI_Allgather(&first, 1, MPI_INT, nodes, 1, MPI_INT, comm);
  for (int i = 0; i < size; ++i) ranks[i] = i;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_translate_ranks(group, size, ranks, all, world);
  MPI_Group_free(&group);
  MPI_Group_free(&all);
  code = imbrex_space_open(id, size, world, nodes, options, space);
  free(ranks);
  return code;
}

#endif
