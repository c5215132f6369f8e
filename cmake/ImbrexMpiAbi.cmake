# SPDX-License-Identifier: BSD-3-Clause
# Which binary interface an MPI has. The build names its library by it, and an installed package
# finds by it the library that fits the MPI of the program.

# imbrex_find_mpi_abi(RESULT): `openmpi`, `mpich`, `abi` (the MPI standard's own), or empty.
# REQUIRES: find_package(MPI COMPONENTS C) has found one.
function(imbrex_find_mpi_abi result)
  set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/imbrex_mpi_abi.c)
  list(TRANSFORM MPI_C_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE includes)
  list(TRANSFORM MPI_C_COMPILE_DEFINITIONS PREPEND -D OUTPUT_VARIABLE definitions)
  execute_process(
    COMMAND ${CMAKE_C_COMPILER} ${MPI_C_COMPILE_OPTIONS} ${definitions} ${includes} -E ${source}
    OUTPUT_VARIABLE text ERROR_QUIET)
  set(found "")
  if(text MATCHES "imbrex_abi=([a-z]+)")
    set(found ${CMAKE_MATCH_1})
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()
