# SPDX-License-Identifier: BSD-3-Clause
# Options of the build, compiler flags, and where things are put. Variables are those of this folder
# and below it: a project of which imbrex is a part keeps its own. What is in the cache is the
# parent's too, so only a top-level build writes CMake's variables there.

option(IMBREX_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(IMBREX_BUILD_APPS "Build apps, examples and benchmarks" ${PROJECT_IS_TOP_LEVEL})
set(IMBREX_MPI "" CACHE STRING
  "Which MPI: openmpi, mpich, openmpi-5, mpich-4, abi, a compiler wrapper's path, or empty")
set_property(CACHE IMBREX_MPI PROPERTY STRINGS "" openmpi mpich openmpi-5 mpich-4 abi)
# A cross build must name its MPI: a search would find the one of this machine.
set(imbrex_can_have_mpi ON)
if(CMAKE_CROSSCOMPILING AND IMBREX_MPI STREQUAL "")
  set(imbrex_can_have_mpi OFF)
endif()
option(IMBREX_BUILD_MPI "Build imbrex::mpi" ${imbrex_can_have_mpi})
set(IMBREX_CORE "" CACHE PATH
  "A build tree of imbrex, whose core library serves: only imbrex::mpi is built, for one more MPI")
option(IMBREX_INSTALL "Have install rules" ${PROJECT_IS_TOP_LEVEL})
option(IMBREX_STATIC_DEPENDENCIES
  "Link hwloc, Boost.Context and fmt into the libraries, hidden" OFF)
option(IMBREX_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
set(IMBREX_SANITIZE "" CACHE STRING "Sanitizers: empty, address (with undefined), or thread")
set_property(CACHE IMBREX_SANITIZE PROPERTY STRINGS "" address thread)

# Programs of one SONAME, and of one SameMinorVersion of the package, fit: docs/user/start.md.
set(imbrex_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# Only with the core, of which there is one variant; not where everything is instrumented.
# A project of which imbrex is a part may turn it on.
set(imbrex_can_have_tsan OFF)
if((PROJECT_IS_TOP_LEVEL OR IMBREX_TSAN_VARIANT) AND NOT IMBREX_SANITIZE AND NOT IMBREX_CORE
   AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=thread)
  check_cxx_source_compiles("int main() { return 0; }" IMBREX_HAS_TSAN)
  unset(CMAKE_REQUIRED_FLAGS)
  set(imbrex_can_have_tsan ${IMBREX_HAS_TSAN})
endif()
option(IMBREX_TSAN_VARIANT "Build the library for programs under ThreadSanitizer, too"
  ${imbrex_can_have_tsan})
if(IMBREX_TSAN_VARIANT AND NOT imbrex_can_have_tsan)
  message(STATUS "imbrex: no variant for ThreadSanitizer: the compiler has none, or the build is "
    "one for a sanitizer or for one more MPI")
  set(IMBREX_TSAN_VARIANT OFF)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
  else()
    message(STATUS "imbrex: CMAKE_BUILD_TYPE is empty, so the runtime is compiled without "
      "optimisation")
  endif()
endif()
# Instead of CMake's own flags, not of those that somebody has chosen.
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_FLAGS_RELWITHDEBINFO STREQUAL "-O2 -g -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g -DNDEBUG")
endif()

# For what need not run fast: tests, fakes, command lines. They take half the compiler's time so.
# gcc takes more for uninitialized at -O1 than at -O3.
set(imbrex_compile_quickly "$<$<CONFIG:RelWithDebInfo,Release>:-O1;-g1>"
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")

# imbrex_compile_together(<target> <count>): so many of its files go to the compiler at a time, for
# their headers take it longer than they do; unless whoever configures has set CMAKE_UNITY_BUILD.
function(imbrex_compile_together target count)
  if(NOT DEFINED CMAKE_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endfunction()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
# The command `imbrex` and links know the libraries by their names, and where they are.
set(CMAKE_DEBUG_POSTFIX "")
# src/CMakeLists.txt says what is optimised when it is linked: symbol versions would be lost.
foreach(config "" _DEBUG _RELEASE _RELWITHDEBINFO _MINSIZEREL)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION${config} OFF)
endforeach()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# A frame that does not fit on the stack, nor into the guard below it, shall meet the guard all the
# same: its pages are touched one by one. Costs nothing for frames below a page.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-fstack-clash-protection IMBREX_HAS_STACK_CLASH_PROTECTION)
if(IMBREX_HAS_STACK_CLASH_PROTECTION)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fstack-clash-protection>)
endif()

# Warnings for the project's own targets; users of the libraries get none, nor do those who build
# them as a part of another project.
add_library(imbrex_flags INTERFACE)
if(PROJECT_IS_TOP_LEVEL OR IMBREX_WERROR)
  target_compile_options(imbrex_flags INTERFACE -Wall -Wextra -Wshadow
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
endif()
target_compile_options(imbrex_flags INTERFACE
  # clang 19 finds std::stable_sort of libstdc++ 12 to use what is deprecated.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>
  $<$<BOOL:${IMBREX_WERROR}>:-Werror>)

# For tests, beside what imbrex_compile_quickly says.
set(imbrex_test_options "${imbrex_compile_quickly}")
if(IMBREX_SANITIZE STREQUAL "address")
  # What is undefined ends the program: a line among what a test prints would not be seen.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  # A look at each pointer doubles the compiler's time; it is for the code that is tested.
  list(APPEND imbrex_test_options -fno-sanitize=null,vptr,alignment,object-size)
elseif(IMBREX_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(NOT IMBREX_SANITIZE STREQUAL "")
  message(FATAL_ERROR "IMBREX_SANITIZE=${IMBREX_SANITIZE}: valid are address, thread, or nothing")
endif()
