# SPDX-License-Identifier: BSD-3-Clause
# `cmake --install` after a build of one target installs all, and a build that fails installs none.
#
# cmake -D modules= -D source= -D work= -P this
cmake_minimum_required(VERSION 3.25)

# imbrex_step(<words>...): fails unless the command succeeds.
function(imbrex_step)
  execute_process(COMMAND ${CMAKE_COMMAND} ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text
    ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "cmake ${ARGN} failed (${status}):\n${text}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work})
imbrex_step(-S ${source} -B ${work}/broken -D MODULES=${modules} -D BROKEN=ON)
imbrex_step(--build ${work}/broken --target first)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${work}/broken --prefix ${work}/empty
  RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(status EQUAL 0 OR EXISTS ${work}/empty OR NOT text MATCHES "nothing was installed")
  message(FATAL_ERROR "an install whose build fails has not left the prefix alone:\n${text}")
endif()

imbrex_step(-S ${source} -B ${work}/whole -D MODULES=${modules})
imbrex_step(--build ${work}/whole --target first)
imbrex_step(--install ${work}/whole --prefix ${work}/prefix)
foreach(library first second)
  if(NOT EXISTS ${work}/prefix/lib/lib${library}.so)
    message(FATAL_ERROR "lib${library}.so was not installed")
  endif()
endforeach()
