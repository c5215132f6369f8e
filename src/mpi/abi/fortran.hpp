// SPDX-License-Identifier: BSD-3-Clause
// A request of a Fortran program during a call of C.
#pragma once

#include <mpi.h>

namespace imbrex::mpi {

class FortranRequest {
 public:
  // For a request that a call is about to make: the variable may hold any value before.
  explicit FortranRequest(MPI_Fint& made) : FortranRequest(made, MPI_REQUEST_NULL) {}
  static FortranRequest that_is(MPI_Fint& given) { return {given, PMPI_Request_f2c(given)}; }
  ~FortranRequest() { given_ = PMPI_Request_c2f(request_); }
  FortranRequest(const FortranRequest&) = delete;
  FortranRequest& operator=(const FortranRequest&) = delete;
  operator MPI_Request*() noexcept { return &request_; }  // NOLINT: converts

 private:
  FortranRequest(MPI_Fint& given, MPI_Request request) : given_(given), request_(request) {}

  MPI_Fint& given_;
  MPI_Request request_;
};

}  // namespace imbrex::mpi
