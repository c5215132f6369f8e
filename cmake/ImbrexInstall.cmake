# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` gives: the libraries, the headers, the `imbrex` command, the gdb script,
# and a package that find_package(imbrex) finds.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(imbrex_package ${CMAKE_INSTALL_LIBDIR}/cmake/imbrex)
set(imbrex_share ${CMAKE_INSTALL_DATADIR}/imbrex)

include(ImbrexBuildFirst)
set(imbrex_libraries imbrex_mpi imbrex_mpi_tsan imbrex_hcmpi)
if(NOT IMBREX_CORE)
  list(APPEND imbrex_libraries imbrex imbrex_tsan imbrex_omp)
endif()
foreach(library ${imbrex_libraries})
  if(NOT TARGET ${library})
    list(REMOVE_ITEM imbrex_libraries ${library})
  endif()
endforeach()
imbrex_build_before_install(${imbrex_libraries})

if(TARGET imbrex_mpi)
  # One library for each binary interface; those of several build trees go to one prefix.
  set(imbrex_mpi_export imbrex-mpi-${IMBREX_MPI_ABI})
  set_target_properties(imbrex_mpi imbrex_hcmpi PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS imbrex_mpi imbrex_hcmpi EXPORT imbrex_mpi
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(TARGET imbrex_mpi_tsan)
    install(TARGETS imbrex_mpi_tsan EXPORT imbrex_mpi
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex/tsan)
    install(FILES ${imbrex_tsan_folder}/libimbrex_mpi_${IMBREX_MPI_ABI}.so
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex/tsan)
  endif()
  install(EXPORT imbrex_mpi NAMESPACE imbrex:: FILE ${imbrex_mpi_export}.cmake
    DESTINATION ${imbrex_package})
  install(FILES ${PROJECT_SOURCE_DIR}/include/TAMPI.h ${PROJECT_SOURCE_DIR}/include/TAMPIf.h
    ${PROJECT_SOURCE_DIR}/include/hcmpi.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
if(IMBREX_CORE)
  include(ImbrexLinkLines)
  set(imbrex_headers mpi.hpp mpi.h continue.h events.h)
  list(TRANSFORM imbrex_headers PREPEND ${PROJECT_SOURCE_DIR}/include/imbrex/)
  install(FILES ${imbrex_headers}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/imbrex)
  return()
endif()

set_target_properties(imbrex PROPERTIES EXPORT_NAME imbrex INSTALL_RPATH "$ORIGIN")
install(TARGETS imbrex EXPORT imbrex LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET imbrex_tsan)
  install(TARGETS imbrex_tsan EXPORT imbrex
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex/tsan)
  install(FILES ${imbrex_tsan_folder}/libimbrex.so
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex/tsan)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/tsan/imbrex.supp DESTINATION ${imbrex_share}/tsan)
endif()
if(TARGET imbrex_omp)
  # Apart from other libraries: who names this folder wants it instead of the compiler's.
  set_target_properties(imbrex_omp PROPERTIES INSTALL_RPATH "$ORIGIN/..")
  install(TARGETS imbrex_omp LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex NAMELINK_SKIP)
endif()
install(EXPORT imbrex NAMESPACE imbrex:: FILE imbrex-core.cmake DESTINATION ${imbrex_package})
# For the trees that add imbrex::mpi for other MPIs.
export(EXPORT imbrex NAMESPACE imbrex:: FILE ${PROJECT_BINARY_DIR}/package/imbrex-core.cmake)
if(TARGET imbrex_mpi)
  install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libimbrex_mpi.so
    ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libimbrex_hcmpi.so
    DESTINATION ${CMAKE_INSTALL_LIBDIR})
else()
  set(without_mpi PATTERN mpi.hpp EXCLUDE PATTERN mpi.h EXCLUDE PATTERN continue.h EXCLUDE
    PATTERN events.h EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/imbrex DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN *.hpp PATTERN *.h ${without_mpi})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/imbrexConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/imbrexConfig.cmake INSTALL_DESTINATION ${imbrex_package}
  PATH_VARS imbrex_share)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/imbrexConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/imbrexConfig.cmake
  ${PROJECT_BINARY_DIR}/package/imbrexConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/ImbrexFortran.cmake ${CMAKE_CURRENT_LIST_DIR}/ImbrexMpiAbi.cmake
  DESTINATION ${imbrex_package})
# As source, whether or not there is a compiler here: imbrex-fort and find_package(imbrex) compile
# it for the one that uses it.
install(FILES ${PROJECT_SOURCE_DIR}/src/fortran/imbrex.f90
  ${PROJECT_SOURCE_DIR}/src/fortran/imbrex_mpi.f90 DESTINATION ${imbrex_share}/fortran)

# The command finds its modules beside itself, behind the link.
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/imbrex DESTINATION ${imbrex_share})
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/netlab DESTINATION ${CMAKE_INSTALL_BINDIR})
set(imbrex_tools compile config deaths errors fortran run)
list(TRANSFORM imbrex_tools REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/tools/imbrex_\\1.py")
install(FILES ${imbrex_tools} ${PROJECT_SOURCE_DIR}/src/base/options.def
  DESTINATION ${imbrex_share})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/imbrex_trace DESTINATION ${imbrex_share}
  FILES_MATCHING PATTERN *.py PATTERN page.* PATTERN *_test.py EXCLUDE PATTERN synthetic.py EXCLUDE
  PATTERN browser.py EXCLUDE PATTERN __pycache__ EXCLUDE)
# Compiled, they start in half of the time. Not where there is no Python yet.
install(CODE "execute_process(COMMAND python3 -IS -m compileall -q -f
  --invalidation-mode checked-hash \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${imbrex_share}\"
  OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE imbrex_ignored)")
# For the page of `imbrex report`: who uses what is installed need not have it.
if(IMBREX_D3)
  install(FILES ${IMBREX_D3} DESTINATION ${imbrex_share}/imbrex_trace RENAME d3.min.js)
else()
  message(STATUS "imbrex: no d3 (Debian: node-d3): `imbrex report` will write no page")
endif()
install(FILES ${PROJECT_SOURCE_DIR}/tools/gdb/imbrex-gdb.py DESTINATION ${imbrex_share}/gdb)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/package ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
file(RELATIVE_PATH imbrex_command
  ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/imbrex/imbrex)
file(CREATE_LINK ${imbrex_command} ${PROJECT_BINARY_DIR}/package/imbrex SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/package/imbrex DESTINATION ${CMAKE_INSTALL_BINDIR})
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/tools/imbrex ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/imbrex
  SYMBOLIC)

include(ImbrexLinkLines)
include(ImbrexInstallPages)

if(IMBREX_BUILD_TESTS)
  add_subdirectory(${PROJECT_SOURCE_DIR}/tools ${PROJECT_BINARY_DIR}/tools)
endif()
