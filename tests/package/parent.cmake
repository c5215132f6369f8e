# SPDX-License-Identifier: BSD-3-Clause
# Builds the project parent/, of which imbrex is a part, with make, without optimisation and several
# sources at a time; runs its programs; and installs it without imbrex, then with it.
#
# cmake -D imbrex= -D source= -D work= -D compiler= -D mpi= -D mpicc= -P this
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

# installed(<prefix> <file>...): these and no other files
function(installed prefix)
  file(GLOB_RECURSE found LIST_DIRECTORIES false RELATIVE ${prefix} ${prefix}/*)
  if(NOT found STREQUAL "${ARGN}")
    message(FATAL_ERROR "${prefix} has ${found}, not ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work})
find_program(make make REQUIRED)
set(configure ${CMAKE_COMMAND} -S ${source} -B ${work}/build -G "Unix Makefiles"
  -D IMBREX_SOURCE=${imbrex} -D CMAKE_CXX_COMPILER=${compiler} -D IMBREX_BUILD_MPI=${mpi}
  -D MPI_C_COMPILER=${mpicc} -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O0
  -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=0)
run("configure a parent" ${configure})
run("build it" ${CMAKE_COMMAND} --build ${work}/build)
run("run it" ${work}/build/programs/with_tasks)
if(mpi)
  run("run it with MPI" ${work}/build/programs/with_mpi)
endif()
file(GLOB_RECURSE found ${work}/build/imbrex/lib/libgomp.so* ${work}/build/imbrex/lib/*_hcmpi_*.so*
  ${work}/build/imbrex/lib/*_tsan.so*)
if(found)
  message(FATAL_ERROR "its `all` has built what it does not use: ${found}")
endif()
run("install it" ${CMAKE_COMMAND} --install ${work}/build --prefix ${work}/alone)
installed(${work}/alone bin/with_tasks)

run("configure it with IMBREX_INSTALL" ${configure} -D IMBREX_INSTALL=ON)
run("build it again" ${CMAKE_COMMAND} --build ${work}/build --target with_tasks)
run("install its part" ${CMAKE_COMMAND} --install ${work}/build --prefix ${work}/both
  --component Unspecified)
installed(${work}/both bin/with_tasks)
if(mpi)
  run("build the libraries for MPI again" ${CMAKE_COMMAND} --build ${work}/build
    --target imbrex_mpi imbrex_preload)
endif()
run("install imbrex for it" ${CMAKE_COMMAND} --install ${work}/build --prefix ${work}/both
  --component runtime)
run("remove what it was built in" ${CMAKE_COMMAND} -E rename ${work}/build ${work}/removed)
run("run what is installed" ${work}/both/bin/with_tasks)
