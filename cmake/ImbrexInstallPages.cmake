# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` gives to read and to start with: the licence, pages, examples, and a module
# file for Environment Modules and Lmod. Pages lie to each other as in the source.

set(imbrex_doc ${CMAKE_INSTALL_DOCDIR})
if(NOT PROJECT_IS_TOP_LEVEL)
  set(imbrex_doc ${CMAKE_INSTALL_DATADIR}/doc/imbrex)  # CMAKE_INSTALL_DOCDIR is the parent's
endif()
install(FILES LICENSE DESTINATION ${imbrex_doc} COMPONENT runtime)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${imbrex_doc}
  COMPONENT development)
install(DIRECTORY docs DESTINATION ${imbrex_doc} COMPONENT development)
install(DIRECTORY examples DESTINATION ${imbrex_doc} COMPONENT development
  FILES_MATCHING PATTERN *.md PATTERN *.py PATTERN *.c PATTERN *.cpp PATTERN *.f90 PATTERN *.hpp
    PATTERN *.h)
install(FILES cmake/examples.cmake DESTINATION ${imbrex_doc}/examples RENAME CMakeLists.txt
  COMPONENT development)
configure_file(cmake/modulefile ${PROJECT_BINARY_DIR}/package/modulefile @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/modulefile
  DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/imbrex RENAME ${PROJECT_VERSION}
  COMPONENT runtime)
