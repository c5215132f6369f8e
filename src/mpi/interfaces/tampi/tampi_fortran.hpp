// SPDX-License-Identifier: BSD-3-Clause
// MPI's constants that Fortran programs pass by address, in the MPI that this library is built for:
// fortran_openmpi.cpp, fortran_mpich.cpp.
#pragma once

namespace imbrex::mpi::tampi {

// True if a Fortran program passed MPI_BOTTOM, or MPI_IN_PLACE.
[[nodiscard]] bool is_fortran_bottom(const void* address) noexcept;
[[nodiscard]] bool is_fortran_in_place(const void* address) noexcept;

// Called before an address is compared with MPI_F_STATUS_IGNORE or by the functions above.
void find_fortran_constants() noexcept;

}  // namespace imbrex::mpi::tampi
