// SPDX-License-Identifier: BSD-3-Clause
// Fortran's constants in MPICH: its Fortran library has their addresses, once a program has called
// any function of it. Weak, since programs in other languages do not load that library.
#include <mpi.h>

#include "mpi/interfaces/tampi/tampi_fortran.hpp"

extern "C" {
[[gnu::weak]] extern void* MPIR_F_MPI_BOTTOM;   // of mpif.h and of the module mpi
[[gnu::weak]] extern void* MPIR_F_MPI_IN_PLACE;
[[gnu::weak]] extern int MPIR_F08_MPI_BOTTOM;   // of mpi_f08: the constant itself
[[gnu::weak]] extern int MPIR_F08_MPI_IN_PLACE;
[[gnu::weak]] void mpi_initialized_(MPI_Fint* flag, MPI_Fint* error);
}

namespace imbrex::mpi::tampi {

namespace {

bool is_either(const void* address, void* const* kept, const int* constant) noexcept {
  return (kept != nullptr && address == *kept) || (constant != nullptr && address == constant);
}

}  // namespace

bool is_fortran_bottom(const void* address) noexcept {
  return is_either(address, &MPIR_F_MPI_BOTTOM, &MPIR_F08_MPI_BOTTOM);
}
bool is_fortran_in_place(const void* address) noexcept {
  return is_either(address, &MPIR_F_MPI_IN_PLACE, &MPIR_F08_MPI_IN_PLACE);
}

void find_fortran_constants() noexcept {
  MPI_Fint flag = 0;
  MPI_Fint error = MPI_SUCCESS;
  if (mpi_initialized_ != nullptr) mpi_initialized_(&flag, &error);
}

}  // namespace imbrex::mpi::tampi
