// SPDX-License-Identifier: BSD-3-Clause
// The Fortran module imbrex_mpi: the functions of imbrex/mpi.h with Fortran's handles.
#include "imbrex/mpi.h"

#ifndef MPI_ABI_VERSION  // the standard's ABI leaves Fortran to others
#include "mpi/abi/fortran.hpp"

using imbrex::mpi::FortranRequest;

#pragma GCC visibility push(default)
extern "C" {

// `status` may be null: MPI_STATUS_IGNORE.
int imbrex_await_request_fortran(MPI_Fint* const request, MPI_Fint* const status) {
  FortranRequest it = FortranRequest::that_is(*request);
  MPI_Status its_status = {};
  const int code = imbrex_await_request(it, &its_status);
  if (code == IMBREX_SUCCESS && status != nullptr) PMPI_Status_c2f(&its_status, status);
  return code;
}

int imbrex_when_request_fortran(MPI_Fint* const request, imbrex_future_t* const future) {
  FortranRequest it = FortranRequest::that_is(*request);
  return imbrex_when_request(it, future);
}

int imbrex_release_after_request_fortran(MPI_Fint* const request) {
  FortranRequest it = FortranRequest::that_is(*request);
  return imbrex_release_after_request(it);
}

}  // extern "C"
#pragma GCC visibility pop
#endif
