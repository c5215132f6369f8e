// SPDX-License-Identifier: BSD-3-Clause
// A program that never calls MPI_Init. Tasks may call MPI, as without imbrex; it says what is
// missing.
#include <mpi.h>

#include <cstdio>

#include "imbrex/imbrex.hpp"

int main() {
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group all;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Comm comm;
  MPI_Comm_create_from_group(all, "imbrex.only", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&all);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int sum = imbrex::task("sum").spawn([=] {
    int total = 0;
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, comm);
    return total;
  }).get();
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  if (sum != size * (size - 1) / 2) return 1;
  std::puts("ran to its end");
}
