// SPDX-License-Identifier: BSD-3-Clause
// Fortran's constants in Open MPI: common blocks of mpif.h, also used by its modules.
#include "mpi/interfaces/tampi/tampi_fortran.hpp"

extern "C" {
// Weak: an Open MPI built without Fortran has none.
[[gnu::weak]] extern int mpi_fortran_bottom_;
[[gnu::weak]] extern int mpi_fortran_in_place_;
}

namespace imbrex::mpi::tampi {

bool is_fortran_bottom(const void* address) noexcept { return address == &mpi_fortran_bottom_; }
bool is_fortran_in_place(const void* address) noexcept {
  return address == &mpi_fortran_in_place_;
}

void find_fortran_constants() noexcept {}  // the linker has found them

}  // namespace imbrex::mpi::tampi
