# SPDX-License-Identifier: BSD-3-Clause
# Installs the commands: `imbrex` and the compilers' wrappers, which are links to it, and `netlab`;
# and the programs behind `imbrex simulate`, `imbrex explain` and `imbrex top`.

# The command finds its modules beside itself, behind the link.
install(PROGRAMS tools/imbrex DESTINATION ${imbrex_share} COMPONENT tools)
install(PROGRAMS tools/netlab DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
file(GLOB imbrex_tools CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/imbrex_*.py)
list(FILTER imbrex_tools EXCLUDE REGEX "_test[.]py$")
install(FILES ${imbrex_tools} tools/imbrex_calibrate.c tools/imbrex_doctor.c
  src/base/tables/policies.def DESTINATION ${imbrex_share} COMPONENT tools)
install(DIRECTORY tools/networks DESTINATION ${imbrex_share} COMPONENT tools)
install(TARGETS imbrex-simulate imbrex-explain DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/imbrex
  COMPONENT tools OPTIONAL)
install(DIRECTORY tools/imbrex_trace DESTINATION ${imbrex_share} COMPONENT tools
  FILES_MATCHING PATTERN *.py PATTERN page.* PATTERN *_test.py EXCLUDE PATTERN synthetic.py EXCLUDE
  PATTERN browser.py EXCLUDE PATTERN __pycache__ EXCLUDE)
# Compiled, they start in half of the time. Not where there is no Python yet.
install(CODE "execute_process(COMMAND python3 -IS -m compileall -q -f
  --invalidation-mode checked-hash \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${imbrex_share}\"
  OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE imbrex_ignored)" COMPONENT tools)
# For the page of `imbrex report`: who uses what is installed need not have it.
if(IMBREX_D3)
  install(FILES ${IMBREX_D3} DESTINATION ${imbrex_share}/imbrex_trace RENAME d3.min.js
    COMPONENT tools)
else()
  message(STATUS "imbrex: no d3 (Debian: node-d3): `imbrex report` will write no page")
endif()
# Beside the libraries, which it finds from there.
install(DIRECTORY python/imbrex DESTINATION ${CMAKE_INSTALL_LIBDIR}/imbrex/python COMPONENT tools
  FILES_MATCHING PATTERN *.py PATTERN py.typed PATTERN __pycache__ EXCLUDE)
install(FILES tools/gdb/imbrex-gdb.py DESTINATION ${imbrex_share}/gdb COMPONENT tools)
install(CODE "execute_process(COMMAND python3 -B \"${PROJECT_SOURCE_DIR}/tools/man_pages.py\"
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/man/man1\" ${PROJECT_VERSION}
  RESULT_VARIABLE imbrex_status)
  if(NOT imbrex_status EQUAL 0)
    message(WARNING \"imbrex: no man pages were written\")
  endif()" COMPONENT tools)

file(RELATIVE_PATH imbrex_command
  ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/imbrex/imbrex)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/package)
foreach(name imbrex imbrex-cc imbrex-c++ imbrex-fort)
  file(CREATE_LINK ${imbrex_command} ${PROJECT_BINARY_DIR}/package/${name} SYMBOLIC)
  install(FILES ${PROJECT_BINARY_DIR}/package/${name} DESTINATION ${CMAKE_INSTALL_BINDIR}
    COMPONENT tools)
endforeach()
