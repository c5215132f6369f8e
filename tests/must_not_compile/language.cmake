# SPDX-License-Identifier: BSD-3-Clause
# cmake -DCOMPILER= -DINCLUDE= -DHEADER= -P language.cmake
# Compiled as C++17, the header must be refused for that reason, and for no other.

execute_process(
  COMMAND ${COMPILER} -std=c++17 -fsyntax-only -I${INCLUDE} -include ${HEADER} -x c++ /dev/null
  RESULT_VARIABLE result
  OUTPUT_VARIABLE text
  ERROR_VARIABLE text)

string(REGEX MATCHALL "error:[^\n]*" errors "${text}")
list(LENGTH errors count)
list(GET errors 0 first)
if(result EQUAL 0 OR NOT first MATCHES "imbrex needs C\\+\\+20" OR count GREATER 2)
  message(FATAL_ERROR "${HEADER} says, in C++17:\n${text}")
endif()
