# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` gives to read and to start with: the licence, pages, examples, man pages,
# and a module file for Environment Modules and Lmod. Pages lie to each other as in the source.

install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN *.c PATTERN *.cpp PATTERN *.f90 PATTERN *.hpp PATTERN *.h)
install(FILES cmake/examples.cmake DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
  RENAME CMakeLists.txt)
install(CODE "execute_process(COMMAND python3 -B \"${PROJECT_SOURCE_DIR}/tools/man_pages.py\"
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/man/man1\" ${PROJECT_VERSION}
  RESULT_VARIABLE imbrex_status)
  if(NOT imbrex_status EQUAL 0)
    message(WARNING \"imbrex: no man pages were written\")
  endif()")
configure_file(cmake/modulefile ${PROJECT_BINARY_DIR}/package/modulefile @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/modulefile
  DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/imbrex RENAME ${PROJECT_VERSION})
