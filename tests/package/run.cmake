# SPDX-License-Identifier: BSD-3-Clause
# run(<what> <command>...): fails unless the command succeeds.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${text}")
  endif()
  message(STATUS "${what}: ok")
endfunction()
