// SPDX-License-Identifier: BSD-3-Clause
// Messages in the trace: who sent how much to whom, in ranks of MPI_COMM_WORLD.
#pragma once

#include <mpi.h>

namespace imbrex::mpi {

struct Message {
  MPI_Comm comm;
  int peer;  // in `comm`
  int tag;
  MPI_Count count;
  MPI_Datatype type;
};

// REQUIRES of both: detail::tracing(). Nothing is recorded for MPI_PROC_NULL.
void trace_sent(const Message& message) noexcept;
void trace_received(MPI_Comm comm, const MPI_Status& status) noexcept;

}  // namespace imbrex::mpi
