# SPDX-License-Identifier: BSD-3-Clause
# What those use who build without CMake: files for pkg-config, and those that `imbrex config` and
# the wrappers imbrex-cc, imbrex-c++ and imbrex-fort read. libimbrex_mpi stands before the MPI's
# library, and is kept by linkers that drop what nothing has named so far.

if(IMBREX_INSTALL)
  set(imbrex_config ${imbrex_share}/config)  # beside tools/imbrex_config.py
  file(RELATIVE_PATH imbrex_pc_prefix /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
  file(RELATIVE_PATH imbrex_share_prefix /p/${imbrex_share} /p)
  string(REGEX REPLACE "/$" "" imbrex_pc_prefix ${imbrex_pc_prefix})
  string(REGEX REPLACE "/$" "" imbrex_share_prefix ${imbrex_share_prefix})
endif()

# imbrex_json_list(<variable> <string>...): ["a", "b"]
function(imbrex_json_list variable)
  list(TRANSFORM ARGN REPLACE "([\"\\\\])" "\\\\\\1")
  list(TRANSFORM ARGN REPLACE "(.+)" "\"\\1\"")
  list(JOIN ARGN ", " text)
  set(${variable} "[${text}]" PARENT_SCOPE)
endfunction()

# imbrex_write_config(<file> <text>): into the build tree, and what is installed.
function(imbrex_write_config file text)
  set(written ${PROJECT_BINARY_DIR}/share/imbrex/config/${file})
  file(CONFIGURE OUTPUT ${written} CONTENT "${text}\n" @ONLY)
  if(NOT IMBREX_INSTALL)
    return()
  endif()
  if(ARGN)
    set(written ${PROJECT_BINARY_DIR}/package/${file})
    file(CONFIGURE OUTPUT ${written} CONTENT "${ARGN}\n" @ONLY)
  endif()
  install(FILES ${written} DESTINATION ${imbrex_config} COMPONENT tools)
endfunction()

# imbrex_write_pc(<name> <template> <component>)
function(imbrex_write_pc name template component)
  if(IMBREX_INSTALL)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${template}.pc.in
      ${PROJECT_BINARY_DIR}/package/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/package/${name}.pc
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
  endif()
endfunction()

if(TARGET imbrex_mpi)
  set(imbrex_found_wrappers "")
  foreach(pair cc:mpicc c++:mpicxx fort:mpifort)
    string(REGEX MATCH "^[^:]*" imbrex_language ${pair})
    string(REGEX MATCH "[^:]*$" imbrex_name ${pair})
    string(REGEX REPLACE "mpicc([^/]*)$" "${imbrex_name}\\1" imbrex_wrapper "${MPI_C_COMPILER}")
    if(EXISTS "${imbrex_wrapper}" AND (imbrex_language STREQUAL "cc" OR
       NOT imbrex_wrapper STREQUAL MPI_C_COMPILER))
      list(APPEND imbrex_found_wrappers "\"${imbrex_language}\": \"${imbrex_wrapper}\"")
    endif()
  endforeach()
  list(JOIN imbrex_found_wrappers ", " imbrex_found_wrappers)
  imbrex_json_list(imbrex_libraries ${MPI_C_LIBRARIES})
  imbrex_json_list(imbrex_includes ${MPI_C_INCLUDE_DIRS})
  imbrex_json_list(imbrex_options ${MPI_C_COMPILE_OPTIONS})
  imbrex_write_config(mpi-${IMBREX_MPI_ABI}.json "{\"interface\": \"${IMBREX_MPI_ABI}\", \
\"include\": ${imbrex_includes}, \"options\": ${imbrex_options}, \
\"libraries\": ${imbrex_libraries}, \"wrappers\": {${imbrex_found_wrappers}}}")

  list(TRANSFORM MPI_C_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE imbrex_pc_cflags)
  list(JOIN imbrex_pc_cflags " " imbrex_pc_cflags)
  list(JOIN MPI_C_LIBRARIES " " imbrex_pc_libs)
  imbrex_write_pc(imbrex-mpi-${IMBREX_MPI_ABI} imbrex-mpi development)
  imbrex_write_pc(imbrex-hcmpi-${IMBREX_MPI_ABI} imbrex-hcmpi compat)
  if(NOT IMBREX_CORE)
    imbrex_write_pc(imbrex-mpi imbrex-mpi development)
    imbrex_write_pc(imbrex-hcmpi imbrex-hcmpi compat)
  endif()
endif()
if(IMBREX_CORE)
  return()
endif()

imbrex_write_pc(imbrex imbrex development)
set(imbrex_built_for "")
if(TARGET imbrex_mpi)
  set(imbrex_built_for ${IMBREX_MPI_ABI})
endif()
include(ImbrexFortran)
if(PROJECT_IS_TOP_LEVEL)
  imbrex_find_fortran()
endif()
set(imbrex_fortran_compiler "")
if(CMAKE_Fortran_COMPILER)
  set(imbrex_fortran_compiler ${CMAKE_Fortran_COMPILER})
endif()
set(imbrex_fortran_options "")
while(imbrex_fortran_versions)
  list(POP_FRONT imbrex_fortran_versions imbrex_id imbrex_text)
  imbrex_json_list(imbrex_options ${imbrex_fortran_${imbrex_id}})
  list(APPEND imbrex_fortran_options "\"${imbrex_text}\": ${imbrex_options}")
endwhile()
list(JOIN imbrex_fortran_options ", " imbrex_fortran_options)
string(CONCAT imbrex_common "\"version\": \"${PROJECT_VERSION}\", "
  "\"mpi\": \"${imbrex_built_for}\", "
  "\"compilers\": {\"cc\": \"${CMAKE_C_COMPILER}\", \"c++\": \"${CMAKE_CXX_COMPILER}\", "
  "\"fort\": \"${imbrex_fortran_compiler}\"}, \"fortran_options\": {${imbrex_fortran_options}}")
imbrex_write_config(core.json
  "{\"prefix\": \"../..\", \"libdir\": \"lib\", \"libexecdir\": \"bin\", \
\"includedir\": \"${PROJECT_SOURCE_DIR}/include\", ${imbrex_common}}"
  "{\"prefix\": \"${imbrex_share_prefix}\", \"libdir\": \"${CMAKE_INSTALL_LIBDIR}\", \
\"libexecdir\": \"${CMAKE_INSTALL_LIBEXECDIR}/imbrex\", \
\"includedir\": \"${CMAKE_INSTALL_INCLUDEDIR}\", ${imbrex_common}}")
