# SPDX-License-Identifier: BSD-3-Clause
# Programs that clang-19 makes for LLVM's OpenMP library: imbrex_has_clang says whether there are
# any. Not with a sanitizer: a sanitizer's runtime of GCC is not Clang's.
find_program(imbrex_clang NAMES clang-19 NO_CACHE)
find_library(imbrex_libomp NAMES libomp.so.5 PATHS /usr/lib/llvm-19/lib NO_CACHE)
set(imbrex_has_clang FALSE)
if(imbrex_clang AND imbrex_libomp AND NOT IMBREX_SANITIZE)
  set(imbrex_has_clang TRUE)
endif()

# imbrex_omp_by_clang(<name> <source> <option>...): imbrex_omp_clang_<name>
function(imbrex_omp_by_clang name source)
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/imbrex_omp_clang_${name})
  set(compiler ${imbrex_clang})
  if(source MATCHES "[.]cpp$")
    list(APPEND compiler --driver-mode=g++)
  endif()
  add_custom_command(OUTPUT ${program}
    COMMAND ${compiler} -O2 -g -fopenmp -Wall -Wextra ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${ARGN}
      -o ${program}
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/tests/omp/check.h)
  add_custom_target(imbrex_omp_clang_${name} ALL DEPENDS ${program})
endfunction()

# imbrex_libraries_of_mpi(<variable>): what a program in C is compiled and linked with
function(imbrex_libraries_of_mpi variable)
  list(TRANSFORM MPI_C_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE options)
  foreach(library ${MPI_C_LIBRARIES})
    get_filename_component(place ${library} DIRECTORY)
    list(APPEND options ${library} -Wl,-rpath,${place})
  endforeach()
  set(${variable} ${options} PARENT_SCOPE)
endfunction()
