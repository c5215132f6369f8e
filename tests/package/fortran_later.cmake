# SPDX-License-Identifier: BSD-3-Clause
# A tree that was configured without a Fortran compiler finds a compiler that is installed later. A
# cross build does not take the compiler of this machine.
#
# cmake -D modules= -D source= -D work= -P this
cmake_minimum_required(VERSION 3.25)

# imbrex_look(<variable> <line of PATH>): what a configuration of the same tree finds.
function(imbrex_look found path)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PATH=${path} ${CMAKE_COMMAND} -S ${source}
    -B ${work} -D MODULES=${modules} ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text
    ERROR_VARIABLE text)
  if(NOT status EQUAL 0 OR NOT text MATCHES "found: ([^\n]*)")
    message(FATAL_ERROR "the configuration failed (${status}):\n${text}")
  endif()
  set(${found} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

unset(ENV{CMAKE_C_COMPILER_LAUNCHER})  # it is not among the tools below
find_program(compiler NAMES gfortran)
if(NOT compiler)
  message(STATUS "left out: no gfortran")
  return()
endif()
file(REMOVE_RECURSE ${work})
# The tools of a machine without Fortran.
file(MAKE_DIRECTORY ${work}/bin)
foreach(tool cc gcc as ld make ninja uname)
  find_program(${tool}_path NAMES ${tool})
  if(${tool}_path)
    file(CREATE_LINK ${${tool}_path} ${work}/bin/${tool} SYMBOLIC)
  endif()
endforeach()
# The system's own directories are searched too.
set(nowhere -D CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF)
imbrex_look(first ${work}/bin -D CMAKE_Fortran_COMPILER=NOTFOUND ${nowhere})
imbrex_look(second $ENV{PATH} -D CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=ON)
if(NOT second)
  message(FATAL_ERROR "a Fortran compiler that was installed later is not found: ${second}")
endif()
file(REMOVE_RECURSE ${work})
imbrex_look(across $ENV{PATH} -D CMAKE_SYSTEM_NAME=Linux -D CMAKE_SYSTEM_PROCESSOR=another)
if(across)
  message(FATAL_ERROR "a cross build has taken the Fortran compiler of this machine: ${across}")
endif()
message(STATUS "first '${first}', then '${second}', in a cross build '${across}': ok")
