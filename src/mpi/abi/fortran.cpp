// SPDX-License-Identifier: BSD-3-Clause
// The Fortran module imbrex_mpi: the functions of imbrex/mpi.h with Fortran's handles.
#include "imbrex/mpi.h"

#ifndef MPI_ABI_VERSION  // the standard's ABI leaves Fortran to others
#pragma GCC visibility push(default)
extern "C" {

// `status` may be null: nobody wants one.
int imbrex_await_request_fortran(MPI_Fint* const request, MPI_Fint* const status) {
  MPI_Request it = PMPI_Request_f2c(*request);
  MPI_Status its_status = {};
  const int code = imbrex_await_request(&it, &its_status);
  *request = PMPI_Request_c2f(it);
  if (code == IMBREX_SUCCESS && status != nullptr) PMPI_Status_c2f(&its_status, status);
  return code;
}

int imbrex_when_request_fortran(MPI_Fint* const request, imbrex_future_t* const future) {
  MPI_Request it = PMPI_Request_f2c(*request);
  const int code = imbrex_when_request(&it, future);
  *request = PMPI_Request_c2f(it);
  return code;
}

int imbrex_release_after_request_fortran(MPI_Fint* const request) {
  MPI_Request it = PMPI_Request_f2c(*request);
  const int code = imbrex_release_after_request(&it);
  *request = PMPI_Request_c2f(it);
  return code;
}

}  // extern "C"
#pragma GCC visibility pop
#endif
