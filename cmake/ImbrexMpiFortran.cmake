# SPDX-License-Identifier: BSD-3-Clause
# The Fortran interface of the MPI whose mpicc this tree uses, for tests, examples and applications.

# imbrex_find_mpi_fortran(): sets MPI_Fortran_FOUND, and makes MPI::MPI_Fortran where there is a
# compiler and the MPI has an mpifort that works. A macro: targets and languages are the caller's.
macro(imbrex_find_mpi_fortran)
  set(MPI_Fortran_FOUND FALSE)
  string(REGEX REPLACE "mpicc([^/]*)$" "mpifort\\1" imbrex_mpifort "${MPI_C_COMPILER}")
  if(TARGET imbrex::fortran AND EXISTS "${imbrex_mpifort}"
      AND NOT imbrex_mpifort STREQUAL MPI_C_COMPILER)
    enable_language(Fortran)
    set(MPI_Fortran_COMPILER ${imbrex_mpifort} CACHE FILEPATH "MPI compiler for Fortran" FORCE)
    find_package(MPI QUIET COMPONENTS Fortran)
  endif()
  if(NOT MPI_Fortran_FOUND)
    message(STATUS "imbrex: no Fortran for ${MPI_C_COMPILER}: no programs in it in "
      "${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
endmacro()
