// SPDX-License-Identifier: BSD-3-Clause
// The promise that receives on a communicator name their tags: then imbrex may send messages with
// different tags in the order of their tasks' priorities (docs/user/sends.md).
#pragma once

#include <mpi.h>

// Collective, since MPI asks for the same on all ranks.
inline void promise_no_any_tag(MPI_Comm comm) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
}
