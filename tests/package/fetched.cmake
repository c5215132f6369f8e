# SPDX-License-Identifier: BSD-3-Clause
# Does what docs/user/embedding.md says with an archive of the source. This file is also a toolchain
# file that makes the build quick: without optimisation, MPI, and with all sources of a library at
# once.
#
# cmake -D imbrex= -D work= -D python= -P this
cmake_minimum_required(VERSION 3.25)

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(CMAKE_CXX_FLAGS_RELEASE -O0 CACHE STRING "flags of a release")
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
  set(IMBREX_BUILD_MPI OFF)
  return()
endif()
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})
file(GLOB files RELATIVE ${imbrex} ${imbrex}/*)
list(FILTER files EXCLUDE REGEX "^(build.*|apps|bench|data)$")
execute_process(COMMAND ${CMAKE_COMMAND} -E tar czf ${work}/imbrex.tar.gz ${files}
  WORKING_DIRECTORY ${imbrex} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E env CMAKE_TOOLCHAIN_FILE=${CMAKE_SCRIPT_MODE_FILE}
  ${python} -B ${CMAKE_CURRENT_LIST_DIR}/pages_test.py ${work}/imbrex.tar.gz ""
  ${imbrex}/docs/user/embedding.md COMMAND_ERROR_IS_FATAL ANY)
