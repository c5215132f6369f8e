/* SPDX-License-Identifier: BSD-3-Clause */
/* Data with owners for C; <imbrex/data.hpp> explains the concepts. distributed/data_tasks.h has
   all functions that do not call MPI. Codes and messages are as in imbrex.h. */
#ifndef IMBREX_DATA_H
#define IMBREX_DATA_H

#include <mpi.h>
#include <stdlib.h>

#include "imbrex/distributed/data_tasks.h"
#include "imbrex/distributed/ranks.h"

/* Makes a space. Collective over `comm`, which may be freed afterwards. Suspends. `options` may
   be null. IMBREX_ERR_USE: messages between ranks are not open, or `comm` is an
   inter-communicator. */
static inline int imbrex_space_create(MPI_Comm comm, const imbrex_space_options* options,
                                      imbrex_space_t* space) {
  int inter = 0, size = 0, code = imbrex_space_check();
  uint64_t id = 0;
  int* world;
  if (code != IMBREX_SUCCESS) return code;
  if (MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) {
    return imbrex_space_refuse("a space of data on a communicator that MPI refuses");
  }
  if (inter) return imbrex_space_refuse("a space of data on an inter-communicator");
  MPI_Comm_size(comm, &size);
  world = (int*)malloc(2 * (size_t)size * sizeof(int));
  if (world == NULL) abort(); /* the other ranks would wait for ever */
  id = imbrex_members(comm, world, world + size);
  code = imbrex_space_open(id, size, world, world + size, options, space);
  free(world);
  return code;
}

#endif
