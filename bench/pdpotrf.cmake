# SPDX-License-Identifier: BSD-3-Clause
# ScaLAPACK's Cholesky, for bench/compare_cholesky. Plain MPI: nothing of imbrex is linked, so that
# its calls are Open MPI's own. Left out where ScaLAPACK is missing.

find_library(SCALAPACK_LIBRARY NAMES scalapack-openmpi scalapack)
if(SCALAPACK_LIBRARY AND IMBREX_MPI_ABI STREQUAL "openmpi")
  add_executable(pdpotrf EXCLUDE_FROM_ALL
    ${PROJECT_SOURCE_DIR}/bench/pdpotrf.cpp ${PROJECT_SOURCE_DIR}/apps/tiled/kernels.cpp)
  target_include_directories(pdpotrf PRIVATE
    ${PROJECT_SOURCE_DIR}/apps/tiled ${LAPACKE_INCLUDE_DIR} ${CBLAS_INCLUDE_DIR})
  target_compile_definitions(pdpotrf PRIVATE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
  target_link_libraries(pdpotrf PRIVATE imbrex_flags fmt::fmt ${SCALAPACK_LIBRARY}
    ${LAPACKE_LIBRARY} ${LAPACK_LIBRARIES} ${BLAS_LIBRARIES} MPI::MPI_C)
else()
  message(STATUS "bench: ScaLAPACK is missing, bench/compare_cholesky cannot run "
    "(Debian: libscalapack-openmpi-dev)")
endif()
