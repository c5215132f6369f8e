# SPDX-License-Identifier: BSD-3-Clause
# cmake -D build= -D core= -D mpicc= -D source= -D work= -D with_mpi= -D compiler= -D generator=
#   -D python= -D d3= -D mpi= -D version= -D pages= -P this
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

# refuses(<text> <words of find_package>...): a project that says them is not configured.
function(refuses text)
  list(JOIN ARGN " " words)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${source}/../refused -B ${work}/refused
    -D CMAKE_PREFIX_PATH=${work}/prefix "-D WORDS=${words}"
    RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  if(status EQUAL 0 OR NOT said MATCHES "${text}")
    message(FATAL_ERROR "find_package(imbrex ${words}) did not fail as it must (${status}):\n"
      "${said}")
  endif()
  message(STATUS "find_package(imbrex ${words}) is refused: ok")
endfunction()

file(REMOVE_RECURSE ${work})
if(core)
  run("install the core" ${CMAKE_COMMAND} --install ${core} --prefix ${work}/prefix)
  run("install" ${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
else()
  foreach(component runtime development)
    run("install ${component}" ${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix
      --component ${component})
  endforeach()
  refuses("omp: imbrex was installed without the component `compat`[.] The imbrex in \
${work}/prefix has: core, [^:]*fortran" REQUIRED COMPONENTS core omp)
  refuses("nonsense: there is no such component" REQUIRED COMPONENTS nonsense OPTIONAL_COMPONENTS
    omp)
  foreach(component tools compat)
    run("install ${component}" ${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix
      --component ${component})
  endforeach()
  run("install all" ${CMAKE_COMMAND} --install ${build} --prefix ${work}/whole)
  foreach(prefix prefix whole)
    file(GLOB_RECURSE ${prefix}_files RELATIVE ${work}/${prefix} ${work}/${prefix}/*)
  endforeach()
  if(NOT prefix_files STREQUAL whole_files)
    list(REMOVE_ITEM whole_files ${prefix_files})
    message(FATAL_ERROR "the four components together are not what is installed without their "
      "names: ${whole_files}, or more")
  endif()
endif()
run("configure a program that uses it" ${CMAKE_COMMAND} -S ${source} -B ${work}/build
  -G ${generator} -D CMAKE_PREFIX_PATH=${work}/prefix -D CMAKE_CXX_COMPILER=${compiler}
  -D WITH_MPI=${with_mpi} -D MPI_C_COMPILER=${mpicc})
run("build it" ${CMAKE_COMMAND} --build ${work}/build)
run("run it" ${work}/build/consumer)
if(with_mpi)
  run("run it with MPI" ${work}/build/consumer_mpi)
  run("run one of HCMPI's" ${work}/build/consumer_hcmpi)
endif()
if(EXISTS ${work}/build/consumer_omp)
  run("run one of OpenMP's" ${work}/build/consumer_omp)
endif()
find_program(clang NAMES clang-19)
if(clang AND NOT core)
  run("configure one of OpenMP's for Clang" ${CMAKE_COMMAND} -S ${source} -B ${work}/by_clang
    -G ${generator} -D CMAKE_PREFIX_PATH=${work}/prefix -D CMAKE_CXX_COMPILER=${compiler}
    -D CMAKE_C_COMPILER=${clang} -D WITH_MPI=OFF)
  run("build it by Clang" ${CMAKE_COMMAND} --build ${work}/by_clang --target consumer_omp)
  run("run it by Clang" ${work}/by_clang/consumer_omp)
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
  set(read ${pages}/README.md ${pages}/docs/user/data-with-owners.md
    ${pages}/docs/user/iterate.md ${pages}/docs/user/start.md
    ${pages}/docs/user/tutorial-mapreduce.md)
  if(mpifort)
    list(APPEND read ${pages}/docs/user/c-and-fortran.md)
  endif()
  find_program(perf perf)
  find_program(gdb gdb)
  find_program(valgrind valgrind)
  if(perf AND gdb AND valgrind)
    list(APPEND read ${pages}/docs/user/profile.md)
  endif()
  run("commands of the pages" ${python} -B ${CMAKE_CURRENT_LIST_DIR}/pages_test.py ${work}/prefix
    ${mpicc} ${read})
endif()
run("what lies beside the libraries" ${python} -B ${CMAKE_CURRENT_LIST_DIR}/beside_test.py
  ${work}/prefix ${with_mpi} ${mpi} ${pages}/build/mpi/mpi4py/bin/python)
run("a wheel" ${python} -B ${CMAKE_CURRENT_LIST_DIR}/wheel_test.py ${work}/prefix ${source}
  ${mpicc})

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
  refuses("compatible with requested version" ${wanted} REQUIRED)
endforeach()
