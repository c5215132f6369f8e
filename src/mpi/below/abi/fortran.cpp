// SPDX-License-Identifier: BSD-3-Clause
// The Fortran module imbrex_mpi: the functions of imbrex/mpi.h with Fortran's handles.
#include "imbrex/mpi.h"

#ifndef MPI_ABI_VERSION  // the standard's ABI leaves Fortran to others
#include "mpi/below/abi/fortran.hpp"

using imbrex::mpi::FortranRequest;

#pragma GCC visibility push(default)
extern "C" {

// `status` may be null: nobody wants one.
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

// Codes are MPI's.
int imbrex_send_to_all_fortran(const void* const buffer, const MPI_Fint count, const MPI_Fint type,
                               const MPI_Fint ranks[], const MPI_Fint n, const MPI_Fint tag,
                               const MPI_Fint comm) {
  return IMBREX_Send_to_all(buffer, count, PMPI_Type_f2c(type), ranks, n, tag,
                            PMPI_Comm_f2c(comm));
}

int imbrex_isend_to_all_fortran(const void* const buffer, const MPI_Fint count,
                                const MPI_Fint type, const MPI_Fint ranks[], const MPI_Fint n,
                                const MPI_Fint tag, const MPI_Fint comm, MPI_Fint* const request) {
  FortranRequest it(*request);
  return IMBREX_Isend_to_all(buffer, count, PMPI_Type_f2c(type), ranks, n, tag,
                             PMPI_Comm_f2c(comm), it);
}

}  // extern "C"
#pragma GCC visibility pop
#endif
