# SPDX-License-Identifier: BSD-3-Clause
# imbrex_tool: the tool by OMPT of the tests, if imbrex_omp_tools is found.
include(${PROJECT_SOURCE_DIR}/cmake/omp_tools.cmake)
if(imbrex_omp_tools AND NOT TARGET imbrex_omp_tool)
  add_library(imbrex_omp_tool MODULE ${CMAKE_CURRENT_LIST_DIR}/tool.cpp)
  target_compile_options(imbrex_omp_tool PRIVATE -O1 -g -Wall -Wextra
    "SHELL:-idirafter ${imbrex_omp_tools}")
  target_link_libraries(imbrex_omp_tool PRIVATE ${CMAKE_DL_LIBS})
endif()
set(imbrex_tool $<TARGET_FILE:imbrex_omp_tool>)
