// SPDX-License-Identifier: BSD-3-Clause
// The parameters of TAMPI 4.0's functions, as its public header has them: a function of TAMPI.h's
// that has others does not compile here.
#include <TAMPI.h>

#if TAMPI_VERSION_MAJOR != 4 || TAMPI_VERSION_MINOR != 0
#error "another version"
#endif
_Static_assert(MPI_TASK_MULTIPLE == MPI_THREAD_MULTIPLE + 1, "the level");
_Static_assert(TAMPI_PROPERTY_BLOCKING_MODE == 1 && TAMPI_PROPERTY_NONBLOCKING_MODE == 2 &&
                   TAMPI_PROPERTY_AUTO_INIT == 3 && TAMPI_PROPERTY_THREAD_TASKAWARE == 4,
               "the properties");

#define SAME(function, ...) \
  _Static_assert(_Generic(&(function), int (*)(__VA_ARGS__): 1, default: 0), #function)

SAME(TAMPI_Init, int, int*);
SAME(TAMPI_Finalize, void);
SAME(TAMPI_Property_get, int, int*);
SAME(TAMPI_Property_set, int, int);
SAME(TAMPI_Blocking_enabled, int*);
SAME(TAMPI_Nonblocking_enabled, int*);
SAME(TAMPI_Iwait, MPI_Request*, MPI_Status*);
SAME(TAMPI_Iwaitall, int, MPI_Request*, MPI_Status*);

#define FROM const void*, int, MPI_Datatype
#define TO void*, int, MPI_Datatype
#define LISTS const int*, const int*

SAME(TAMPI_Isend, FROM, int, int, MPI_Comm);
SAME(TAMPI_Issend, FROM, int, int, MPI_Comm);
SAME(TAMPI_Irsend, FROM, int, int, MPI_Comm);
SAME(TAMPI_Ibsend, FROM, int, int, MPI_Comm);
SAME(TAMPI_Irecv, TO, int, int, MPI_Comm, MPI_Status*);
SAME(TAMPI_Ibarrier, MPI_Comm);
SAME(TAMPI_Ibcast, TO, int, MPI_Comm);
SAME(TAMPI_Igather, FROM, TO, int, MPI_Comm);
SAME(TAMPI_Igatherv, FROM, void*, LISTS, MPI_Datatype, int, MPI_Comm);
SAME(TAMPI_Iscatter, FROM, TO, int, MPI_Comm);
SAME(TAMPI_Iscatterv, const void*, LISTS, MPI_Datatype, TO, int, MPI_Comm);
SAME(TAMPI_Iallgather, FROM, TO, MPI_Comm);
SAME(TAMPI_Iallgatherv, FROM, void*, LISTS, MPI_Datatype, MPI_Comm);
SAME(TAMPI_Ialltoall, FROM, TO, MPI_Comm);
SAME(TAMPI_Ialltoallv, const void*, LISTS, MPI_Datatype, void*, LISTS, MPI_Datatype, MPI_Comm);
SAME(TAMPI_Ialltoallw, const void*, LISTS, const MPI_Datatype*, void*, LISTS, const MPI_Datatype*,
     MPI_Comm);
SAME(TAMPI_Ireduce, const void*, TO, MPI_Op, int, MPI_Comm);
SAME(TAMPI_Iallreduce, const void*, TO, MPI_Op, MPI_Comm);
SAME(TAMPI_Ireduce_scatter, const void*, void*, const int*, MPI_Datatype, MPI_Op, MPI_Comm);
SAME(TAMPI_Ireduce_scatter_block, const void*, TO, MPI_Op, MPI_Comm);
SAME(TAMPI_Iscan, const void*, TO, MPI_Op, MPI_Comm);
SAME(TAMPI_Iexscan, const void*, TO, MPI_Op, MPI_Comm);
