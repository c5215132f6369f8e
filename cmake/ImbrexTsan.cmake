# SPDX-License-Identifier: BSD-3-Clause
# The libraries for programs under ThreadSanitizer, which link them instead of the others: linkers
# find them by the same names, in a folder of their own; but the dynamic linker by others, wherever
# LD_LIBRARY_PATH leads it. They are not instrumented, and tell the ThreadSanitizer that is in the
# program who comes after whom; docs/design/races.md.

set(imbrex_tsan_folder ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/imbrex/tsan)

# imbrex_set_up_variant(<target> <name> <library>): imbrex::<name>, for lib<library>.so
function(imbrex_set_up_variant target name library)
  add_library(imbrex::${name} ALIAS ${target})
  target_compile_definitions(${target} PRIVATE IMBREX_RACES=1)
  target_compile_options(${target} PRIVATE "${imbrex_compile_quickly}")
  # Nothing of the program's, which is instrumented, serves the library.
  target_link_options(${target} PRIVATE "LINKER:-Bsymbolic-functions"
    "LINKER:--version-script=${PROJECT_SOURCE_DIR}/src/trace/races.map")
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} OUTPUT_NAME ${library}_tsan
    VERSION ${PROJECT_VERSION} SOVERSION ${imbrex_soversion}
    LIBRARY_OUTPUT_DIRECTORY ${imbrex_tsan_folder})
  file(MAKE_DIRECTORY ${imbrex_tsan_folder})
  file(CREATE_LINK lib${library}_tsan.so ${imbrex_tsan_folder}/lib${library}.so SYMBOLIC)
endfunction()

# imbrex_tsan, in the folder of imbrex_objects; with these sources of its own
function(imbrex_add_core_variant)
  get_target_property(sources imbrex_objects SOURCES)
  get_target_property(libraries imbrex_objects LINK_LIBRARIES)
  # What the C interface looks at of the headers is the program's code. Its objects come last: of
  # functions that others have too, those of the others are taken.
  set(c_sources ${sources})
  list(FILTER c_sources INCLUDE REGEX "^c/")
  list(FILTER sources EXCLUDE REGEX "^c/")
  add_library(imbrex_tsan_c OBJECT ${c_sources})
  target_compile_options(imbrex_tsan_c PRIVATE -fsanitize=thread "${imbrex_compile_quickly}")
  target_include_directories(imbrex_tsan_c PRIVATE ${PROJECT_SOURCE_DIR}/include
    ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(imbrex_tsan_c PRIVATE ${libraries})
  add_library(imbrex_tsan SHARED ${sources} ${ARGN}
    $<TARGET_OBJECTS:imbrex_tsan_c>)
  imbrex_set_up_variant(imbrex_tsan imbrex_tsan imbrex)
  target_include_directories(imbrex_tsan PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_compile_features(imbrex_tsan PUBLIC cxx_std_20)
  target_compile_options(imbrex_tsan INTERFACE -fsanitize=thread)
  target_link_options(imbrex_tsan INTERFACE -fsanitize=thread)
  target_link_libraries(imbrex_tsan PRIVATE ${libraries})
  imbrex_compile_together(imbrex_tsan 8)
  if(IMBREX_HAS_LIBBACKTRACE)
    target_link_options(imbrex_tsan PRIVATE "LINKER:--exclude-libs,libbacktrace.a")
  endif()
endfunction()

# imbrex_mpi_tsan, in the folder of imbrex_mpi
function(imbrex_add_mpi_variant)
  get_target_property(sources imbrex_mpi SOURCES)
  get_target_property(options imbrex_mpi COMPILE_OPTIONS)
  add_library(imbrex_mpi_tsan SHARED ${sources} ${PROJECT_SOURCE_DIR}/src/trace/races_memory.cpp)
  imbrex_set_up_variant(imbrex_mpi_tsan mpi_tsan imbrex_mpi_${IMBREX_MPI_ABI})
  add_dependencies(imbrex_mpi_tsan imbrex_own_names imbrex_tsan)
  target_include_directories(imbrex_mpi_tsan PRIVATE ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(imbrex_mpi_tsan PRIVATE IMBREX_MPI_ABI="${IMBREX_MPI_ABI}"
    PUBLIC OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
  target_compile_options(imbrex_mpi_tsan PRIVATE ${options})
  target_link_libraries(imbrex_mpi_tsan PUBLIC MPI::MPI_C INTERFACE imbrex_tsan
    PRIVATE $<TARGET_FILE:imbrex_tsan> imbrex_flags fmt::fmt ${CMAKE_DL_LIBS})
  target_link_options(imbrex_mpi_tsan INTERFACE "LINKER:--push-state,--no-as-needed"
    $<TARGET_FILE:imbrex::mpi_tsan> "LINKER:--pop-state")
  set_target_properties(imbrex_mpi_tsan PROPERTIES INSTALL_RPATH "$ORIGIN")
  imbrex_compile_together(imbrex_mpi_tsan 13)
endfunction()
