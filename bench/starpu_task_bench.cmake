# SPDX-License-Identifier: BSD-3-Clause
# The graphs of apps/task_bench on StarPU-MPI, for bench/papers/task_bench. Nothing of imbrex is
# linked.

if(STARPUMPI_FOUND AND IMBREX_MPI_ABI STREQUAL "openmpi")
  add_executable(starpu_task_bench EXCLUDE_FROM_ALL
    ${PROJECT_SOURCE_DIR}/bench/starpu_task_bench.cpp)
  target_include_directories(starpu_task_bench PRIVATE ${PROJECT_SOURCE_DIR}/apps)
  target_link_libraries(starpu_task_bench PRIVATE task_bench_parts imbrex_flags
    PkgConfig::STARPUMPI)
else()
  message(STATUS "bench: StarPU-MPI is missing, bench/papers/task_bench leaves it out "
    "(Debian: libstarpu-dev)")
endif()
