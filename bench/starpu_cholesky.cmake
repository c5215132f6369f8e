# SPDX-License-Identifier: BSD-3-Clause
# The Cholesky of StarPU-MPI, for bench/papers/europar20. Nothing of imbrex is linked. Debian's
# StarPU is built with Open MPI.

pkg_check_modules(STARPUMPI QUIET IMPORTED_TARGET starpumpi-1.3)
if(STARPUMPI_FOUND AND IMBREX_MPI_ABI STREQUAL "openmpi")
  add_executable(starpu_cholesky EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/starpu_cholesky.cpp
    ${PROJECT_SOURCE_DIR}/apps/tiled/kernels.cpp ${PROJECT_SOURCE_DIR}/apps/tiled/matrix.cpp
    ${PROJECT_SOURCE_DIR}/apps/tiled/sleep.cpp)
  target_include_directories(starpu_cholesky PRIVATE
    ${PROJECT_SOURCE_DIR}/apps ${LAPACKE_INCLUDE_DIR} ${CBLAS_INCLUDE_DIR})
  target_compile_definitions(starpu_cholesky PRIVATE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
  target_link_libraries(starpu_cholesky PRIVATE imbrex_flags fmt::fmt PkgConfig::STARPUMPI
    ${LAPACKE_LIBRARY} ${LAPACK_LIBRARIES} ${BLAS_LIBRARIES} MPI::MPI_C)
else()
  message(STATUS "bench: StarPU-MPI is missing, bench/papers/europar20 leaves it out "
    "(Debian: libstarpu-dev)")
endif()
