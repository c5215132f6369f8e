// SPDX-License-Identifier: BSD-3-Clause
// TAMPI_Isend and similar calls, from the table of calls: MPI_I..., as the program would call it,
// then TAMPI_Iwait. A signature that TAMPI.h declares differently does not compile. calls_3.cpp
// makes those of TAMPI 1 to 3, which return the request, of the same lines.
#include "TAMPI.h"
#include "mpi/interfaces/tampi/tampi.hpp"

using imbrex::mpi::tampi::bind_started;

#ifdef IMBREX_TAMPI_3
#define IMBREX_AND_REQUEST_PARAMETER(...) (__VA_ARGS__, MPI_Request* request)
#define IMBREX_OWN_REQUEST
#else
#define IMBREX_AND_REQUEST_PARAMETER(...) (__VA_ARGS__)
#define IMBREX_OWN_REQUEST                \
  MPI_Request own = MPI_REQUEST_NULL; \
  MPI_Request* const request = &own;
#endif
#define IMBREX_AND_REQUEST(...) (__VA_ARGS__, request)

#define IMBREX_BOUND(twin, parameters, arguments)                                          \
  int TAMPI_##twin IMBREX_AND_REQUEST_PARAMETER parameters {                               \
    IMBREX_OWN_REQUEST                                                                     \
    return bind_started("TAMPI_" #twin, MPI_##twin IMBREX_AND_REQUEST arguments, request, {}); \
  }

#pragma GCC visibility push(default)
extern "C" {

using Count = int;
using Place = int;
#define IMBREX_SEND_C(name, twin)                                                          \
  IMBREX_BOUND(twin,                                                                       \
               (const void* buffer, Count count, MPI_Datatype type, int destination, int tag, \
                MPI_Comm comm),                                                            \
               (buffer, count, type, destination, tag, comm))
#define IMBREX_COLLECTIVE_C(name, twin, parameters, arguments) \
  IMBREX_BOUND(twin, parameters, arguments)
#define IMBREX_NEIGHBOR_C(...)  // TAMPI has none of these
#include "mpi/calls/calls.def"
IMBREX_BOUND(Ibarrier, (MPI_Comm comm), (comm))

#ifdef IMBREX_TAMPI_3
#define IMBREX_REQUEST_PARAMETER , MPI_Request* request
#else
#define IMBREX_REQUEST_PARAMETER
#endif
int TAMPI_Irecv(void* buffer, const int count, const MPI_Datatype type, const int source,
                const int tag, const MPI_Comm comm IMBREX_REQUEST_PARAMETER, MPI_Status* status) {
  IMBREX_OWN_REQUEST
  const int code = MPI_Irecv(buffer, count, type, source, tag, comm, request);
  return bind_started("TAMPI_Irecv", code, request, imbrex::mpi::tampi::place_of(status));
}

}  // extern "C"
#pragma GCC visibility pop
