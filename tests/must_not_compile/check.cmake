# SPDX-License-Identifier: BSD-3-Clause
# cmake -DCOMPILER= -DSOURCE= -DINCLUDE= -DMISUSE= -DEXPECT= -P check.cmake
# Compiles one misuse; it must fail with a message that matches EXPECT. Misuse 0 must compile.

execute_process(
  COMMAND ${COMPILER} -std=c++20 -fsyntax-only -Wall -Werror -I${INCLUDE}
          -DMISUSE=${MISUSE} ${SOURCE}
  RESULT_VARIABLE result
  OUTPUT_VARIABLE text
  ERROR_VARIABLE text)

if(MISUSE EQUAL 0)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "The right use does not compile:\n${text}")
  endif()
  return()
endif()
if(result EQUAL 0)
  message(FATAL_ERROR "Misuse ${MISUSE} compiles")
endif()
if(NOT text MATCHES "${EXPECT}")
  message(FATAL_ERROR "Misuse ${MISUSE} fails without \"${EXPECT}\":\n${text}")
endif()
