# SPDX-License-Identifier: BSD-3-Clause
# Installs the libraries, their headers, and a package that find_package(imbrex) finds.

# imbrex_targets(<variable> <target>...): those of them that this tree has
function(imbrex_targets variable)
  set(found "")
  foreach(target ${ARGN})
    if(TARGET ${target} AND NOT (IMBREX_CORE AND
        target MATCHES "^imbrex(_tsan|_omp|_gomp|_libomp|_libiomp)?$"))
      list(APPEND found ${target})
    endif()
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

include(ImbrexBuildFirst)
imbrex_targets(imbrex_runtime imbrex imbrex_mpi imbrex_preload)
imbrex_targets(imbrex_variants imbrex_tsan imbrex_mpi_tsan)
set(imbrex_omp_faces imbrex_gomp imbrex_libomp imbrex_libiomp)
imbrex_targets(imbrex_compat imbrex_omp ${imbrex_omp_faces} imbrex_hcmpi)
imbrex_targets(imbrex_programs imbrex-simulate imbrex-explain)
# As a part of another project this is one of many, and installs what that one has built.
if(PROJECT_IS_TOP_LEVEL)
  foreach(pair runtime:runtime variants:development compat:compat programs:tools)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 group)
    list(GET pair 1 component)
    if(imbrex_${group})
      imbrex_build_before_install(${component} ${imbrex_${group}})
    endif()
  endforeach()
endif()

# An export of its own for what another component than `runtime` has: what find_package() includes
# must be there as a whole.
if(TARGET imbrex_mpi)
  # One library for each binary interface; those of several build trees go to one prefix.
  # CMAKE_INSTALL_RPATH may name a folder in which an MPI is looked for.
  set_target_properties(imbrex_mpi imbrex_hcmpi PROPERTIES
    INSTALL_RPATH "$ORIGIN;${CMAKE_INSTALL_RPATH}")
  install(TARGETS imbrex_mpi EXPORT imbrex_mpi
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
    FILE_SET tampi DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT compat)
  install(EXPORT imbrex_mpi NAMESPACE imbrex:: FILE imbrex-mpi-${IMBREX_MPI_ABI}.cmake
    DESTINATION ${imbrex_package} COMPONENT development)
  install(TARGETS imbrex_hcmpi EXPORT imbrex_hcmpi
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compat
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT compat)
  install(EXPORT imbrex_hcmpi NAMESPACE imbrex:: FILE imbrex-hcmpi-${IMBREX_MPI_ABI}.cmake
    DESTINATION ${imbrex_package} COMPONENT compat)
  if(NOT IMBREX_CORE)
    install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libimbrex_mpi.so
      DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
    install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libimbrex_hcmpi.so
      DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compat)
  endif()
endif()
if(TARGET imbrex_mpi_tsan)
  install(TARGETS imbrex_mpi_tsan EXPORT imbrex_mpi
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex/tsan COMPONENT development)
  install(FILES ${imbrex_tsan_folder}/libimbrex_mpi_${IMBREX_MPI_ABI}.so
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex/tsan COMPONENT development)
endif()
if(IMBREX_CORE)
  return()
endif()

if(TARGET imbrex_preload)
  install(TARGETS imbrex_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
endif()
set_target_properties(imbrex PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS imbrex EXPORT imbrex
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
if(TARGET imbrex_tsan)
  install(TARGETS imbrex_tsan EXPORT imbrex
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex/tsan COMPONENT development)
  install(FILES ${imbrex_tsan_folder}/libimbrex.so
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex/tsan COMPONENT development)
  install(FILES tools/tsan/imbrex.supp DESTINATION ${imbrex_share}/tsan COMPONENT development)
endif()
if(TARGET imbrex_omp)
  # Apart from other libraries: who names this folder wants it instead of the compiler's.
  set_target_properties(imbrex_omp PROPERTIES INSTALL_RPATH "$ORIGIN/..")
  set_target_properties(${imbrex_omp_faces} PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS imbrex_omp ${imbrex_omp_faces} EXPORT imbrex_omp
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex COMPONENT compat NAMELINK_SKIP)
  # A name that packages of libomp without versions give it.
  install(CODE "file(CREATE_LINK libomp.so.5
    \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/imbrex/libomp.so SYMBOLIC)"
    COMPONENT compat)
  install(EXPORT imbrex_omp NAMESPACE imbrex:: FILE imbrex-omp.cmake
    DESTINATION ${imbrex_package} COMPONENT compat)
endif()
install(EXPORT imbrex NAMESPACE imbrex:: FILE imbrex-core.cmake
  DESTINATION ${imbrex_package} COMPONENT development)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/imbrexConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/imbrexConfig.cmake INSTALL_DESTINATION ${imbrex_package}
  PATH_VARS imbrex_share CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/imbrexConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/imbrexConfig.cmake
  ${PROJECT_BINARY_DIR}/package/imbrexConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/ImbrexFortran.cmake ${CMAKE_CURRENT_LIST_DIR}/ImbrexMpiAbi.cmake
  ${CMAKE_CURRENT_LIST_DIR}/imbrex_mpi_abi.c
  DESTINATION ${imbrex_package} COMPONENT development)
# As source, whether or not there is a compiler here: imbrex-fort and find_package(imbrex) compile
# it for the one that uses it.
install(FILES src/fortran/imbrex.f90 src/fortran/imbrex_mpi.f90 DESTINATION ${imbrex_share}/fortran
  COMPONENT development)
