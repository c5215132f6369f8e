# SPDX-License-Identifier: BSD-3-Clause
# cmake -D build= -D core= -D mpicc= -D source= -D work= -D with_mpi= -D compiler= -D generator=
#   -D python= -D d3= -D mpi= -D version= -D pages= -P this
cmake_minimum_required(VERSION 3.25)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${text}")
  endif()
  message(STATUS "${what}: ok")
endfunction()

file(REMOVE_RECURSE ${work})
if(core)
  run("install the core" ${CMAKE_COMMAND} --install ${core} --prefix ${work}/prefix)
endif()
run("install" ${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
run("configure a program that uses it" ${CMAKE_COMMAND} -S ${source} -B ${work}/build
  -G ${generator} -D CMAKE_PREFIX_PATH=${work}/prefix -D CMAKE_CXX_COMPILER=${compiler}
  -D WITH_MPI=${with_mpi} -D MPI_C_COMPILER=${mpicc})
run("build it" ${CMAKE_COMMAND} --build ${work}/build)
run("run it" ${work}/build/consumer)
if(with_mpi)
  run("run it with MPI" ${work}/build/consumer_mpi)
  run("run one of HCMPI's" ${work}/build/consumer_hcmpi)
endif()
set(ENV{TSAN_OPTIONS} suppressions=${work}/prefix/share/imbrex/tsan/imbrex.supp)
foreach(program consumer_tsan consumer_mpi_tsan)
  if(EXISTS ${work}/build/${program})
    run("run ${program}" ${work}/build/${program})
  endif()
endforeach()
run("record a trace" ${CMAKE_COMMAND} -E env IMBREX_TRACE=${work}/trace ${work}/build/consumer)
run("every command, installed" ${python} -B ${CMAKE_CURRENT_LIST_DIR}/commands_test.py
  ${work}/prefix/bin/imbrex ${work}/trace "${d3}")
run("programs without CMake" ${python} -B ${CMAKE_CURRENT_LIST_DIR}/link_lines_test.py
  ${work}/prefix ${source} ${with_mpi} ${mpi} ${mpicc})
# Pages are for the MPI that is found first, and one has programs in Fortran.
find_program(mpifort mpifort)
if(with_mpi AND NOT core)
  set(read ${pages}/README.md ${pages}/docs/user/start.md)
  if(mpifort)
    list(APPEND read ${pages}/docs/user/c-and-fortran.md)
  endif()
  run("commands of the pages" ${python} -B ${CMAKE_CURRENT_LIST_DIR}/pages_test.py ${work}/prefix
    ${mpicc} ${read})
endif()
run("what lies beside the libraries" ${python} -B ${CMAKE_CURRENT_LIST_DIR}/beside_test.py
  ${work}/prefix ${with_mpi})

# prints(<text> <command>...)
function(prints text)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT said STREQUAL text)
    message(FATAL_ERROR "${ARGN} printed '${said}', not '${text}'")
  endif()
  message(STATUS "${text}: ok")
endfunction()
prints("${version} ${version}" ${work}/build/consumer version)
prints("imbrex ${version}" ${work}/prefix/bin/imbrex --version)

# Versions that the package does not serve: of another minor number, a newer patch.
string(REGEX REPLACE "([0-9]+)$" "" minor ${version})
math(EXPR patch "${CMAKE_MATCH_1} + 1")
foreach(wanted 99 0.0 ${minor}${patch})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${source}/../too_new -B ${work}/too_new
    -D CMAKE_PREFIX_PATH=${work}/prefix -D WANTED=${wanted}
    RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(status EQUAL 0 OR NOT text MATCHES "compatible[ \n]+with requested version")
    message(FATAL_ERROR "find_package(imbrex ${wanted}) did not fail as it must (${status}):\n"
      "${text}")
  endif()
endforeach()
message(STATUS "versions that are not there are refused: ok")
