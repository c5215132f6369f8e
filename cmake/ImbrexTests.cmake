# SPDX-License-Identifier: BSD-3-Clause
# Programs of Google Test.

# Google Test's header and the standard's take a test longer to compile than its own lines: they are
# compiled once for all. (With CMAKE_DISABLE_PRECOMPILE_HEADERS a test must name what it uses.)
set(imbrex_gtest_headers <algorithm> <atomic> <chrono> <functional> <memory> <string> <thread>
  <vector> <gtest/gtest.h>)
add_library(imbrex_gtest_headers OBJECT ${CMAKE_CURRENT_LIST_DIR}/gtest_headers.cpp)
target_link_libraries(imbrex_gtest_headers PRIVATE imbrex_flags GTest::gtest)
set_target_properties(imbrex_gtest_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(imbrex_gtest_headers PRIVATE ${imbrex_test_options} -fPIE -pthread)
target_precompile_headers(imbrex_gtest_headers PRIVATE ${imbrex_gtest_headers})

# imbrex_use_gtest(<program> [gtest_main]), for a program that is compiled quickly.
function(imbrex_use_gtest program)
  list(TRANSFORM ARGN PREPEND GTest:: OUTPUT_VARIABLE main)
  target_link_libraries(${program} PRIVATE GTest::gtest ${main})
  target_compile_options(${program} PRIVATE -pthread)  # as the headers; some MPIs ask for it too
  target_precompile_headers(${program} REUSE_FROM imbrex_gtest_headers)
endfunction()

file(STRINGS ${PROJECT_SOURCE_DIR}/src/base/tables/policies.def imbrex_policies
  REGEX "^IMBREX_POLICY")
list(TRANSFORM imbrex_policies REPLACE "^IMBREX_POLICY\\(([a-z0-9]+).*" "\\1")
if(IMBREX_SANITIZE)
  list(REMOVE_ITEM imbrex_policies ma1 ma2 ma3 fa)  # parts of what sa and ga do
elseif(CMAKE_CROSSCOMPILING)
  set(imbrex_policies default seeded)  # an emulator is slow: docs/design/tests.md
endif()
# `./test` leaves a test with the label `full` to `./test --full`. Those of policies that have no
# code which these four lack get it: docs/design/tests.md. A test ends in the policy's name.
set(imbrex_policies_full ${imbrex_policies} ma1 ma2 ma3 fa)
list(REMOVE_ITEM imbrex_policies_full default priority ga seeded)
if(IMBREX_SANITIZE)
  list(APPEND imbrex_policies_full priority)  # its code is a part of the code of ga
endif()
if(IMBREX_SANITIZE STREQUAL "thread")
  list(APPEND imbrex_policies_full seeded)  # its workers take turns: there is no race to see
endif()
list(JOIN imbrex_policies_full "|" imbrex_policies_full)
function(imbrex_policy_label test)
  if(test MATCHES "[._](${imbrex_policies_full})(_w[0-9]+)?$")
    set_property(TEST ${test} APPEND PROPERTY LABELS full)
  endif()
endfunction()

# imbrex_races(<test>...): a defect that these tests have found showed in some runs only. `./test
# --full` repeats each of them a hundred times.
function(imbrex_races)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS race)
endfunction()
