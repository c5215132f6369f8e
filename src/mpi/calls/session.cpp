// SPDX-License-Identifier: BSD-3-Clause
// Sessions: MPI_Session_init asks for MPI_THREAD_MULTIPLE, whatever the program asks for. The level
// of the first initialisation may hold for the whole process, so a session before MPI_Init could
// deprive the workers of the level that they need.
#include "mpi/abi/standard.hpp"

#if IMBREX_MPI_4

IMBREX_FUNCTION(Session_init)(MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
  MPI_Info raised = MPI_INFO_NULL;
  int code = info == MPI_INFO_NULL ? PMPI_Info_create(&raised) : PMPI_Info_dup(info, &raised);
  // MPI reports the error
  if (code != MPI_SUCCESS) return PMPI_Session_init(info, handler, session);
  PMPI_Info_set(raised, "thread_level", "MPI_THREAD_MULTIPLE");
  code = PMPI_Session_init(raised, handler, session);
  PMPI_Info_free(&raised);
  return code;
}

#endif
