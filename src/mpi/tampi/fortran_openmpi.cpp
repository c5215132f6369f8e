// SPDX-License-Identifier: BSD-3-Clause
// Fortran's constants in Open MPI, and the start and end of MPI: its Fortran library calls
// PMPI_Init and so on, past us, so that a program of TAMPI's would never start imbrex.
#include <mpi.h>

#include "tampi/fortran.hpp"

#pragma GCC visibility push(default)
extern "C" {
// Common blocks of mpif.h. Weak: an Open MPI that is built without Fortran has none.
[[gnu::weak]] extern int mpi_fortran_bottom_;
[[gnu::weak]] extern int mpi_fortran_in_place_;

void mpi_init_(MPI_Fint* error) { *error = MPI_Init(nullptr, nullptr); }
void mpi_init_thread_(MPI_Fint* required, MPI_Fint* provided, MPI_Fint* error) {
  *error = MPI_Init_thread(nullptr, nullptr, *required, provided);
}
void mpi_query_thread_(MPI_Fint* provided, MPI_Fint* error) { *error = MPI_Query_thread(provided); }
void mpi_finalize_(MPI_Fint* error) { *error = MPI_Finalize(); }
}
#pragma GCC visibility pop

namespace imbrex::mpi::tampi {

bool is_fortran_bottom(const void* address) noexcept { return address == &mpi_fortran_bottom_; }
bool is_fortran_in_place(const void* address) noexcept {
  return address == &mpi_fortran_in_place_;
}

void find_fortran_constants() noexcept {}  // the linker has

}  // namespace imbrex::mpi::tampi
