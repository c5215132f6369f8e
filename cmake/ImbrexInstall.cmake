# SPDX-License-Identifier: BSD-3-Clause
# The `imbrex` command of the build tree, and what `cmake --install` gives, by components:
#   runtime      the libraries that a program needs to run, under each of their names, since some
#                are preloaded; the licence, the module file
#   development  headers, files for CMake and pkg-config, the variant for ThreadSanitizer, the
#                source of the Fortran modules, pages and examples
#   tools        `imbrex`, the compilers' wrappers, `netlab`, the gdb script, man pages
#   compat       what programs need that were written for another system: libgomp.so.1, HCMPI's
#                library and header, TAMPI's headers. No program of imbrex's own interface needs it.

if(NOT IMBREX_CORE)
  # For the trees that add imbrex::mpi for other MPIs.
  set(imbrex_core_targets imbrex)
  if(TARGET imbrex_tsan)
    list(APPEND imbrex_core_targets imbrex_tsan)
  endif()
  export(TARGETS ${imbrex_core_targets} NAMESPACE imbrex::
    FILE ${PROJECT_BINARY_DIR}/package/imbrex-core.cmake)
  file(MAKE_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  foreach(name imbrex imbrex-cc imbrex-c++ imbrex-fort)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/tools/imbrex ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}
      SYMBOLIC)
  endforeach()
  if(IMBREX_BUILD_TESTS AND NOT CMAKE_CROSSCOMPILING)
    add_subdirectory(tools)
  endif()
endif()

if(IMBREX_INSTALL)
  include(GNUInstallDirs)
  include(CMakePackageConfigHelpers)
  set(imbrex_package ${CMAKE_INSTALL_LIBDIR}/cmake/imbrex)
  set(imbrex_share ${CMAKE_INSTALL_DATADIR}/imbrex)
  include(ImbrexInstallLibraries)
endif()
include(ImbrexLinkLines)  # also for the command in the build tree
if(IMBREX_INSTALL AND NOT IMBREX_CORE)
  include(ImbrexInstallTools)
  include(ImbrexInstallPages)
endif()
