# SPDX-License-Identifier: BSD-3-Clause
# The Fortran modules, compiled by the compiler that uses them: a compiler reads only modules of its
# own kind. For the build tree, and for projects that use the installed package.

include(CheckLanguage)

# What makes local variables of a procedure its own in each task, by CMake's name of the compiler;
# imbrex-fort gives the options to compilers whose --version has the text. gfortran makes large
# arrays static without it. The second option reports arrays that are larger than a stack.
set(imbrex_fortran_GNU -frecursive -fstack-clash-protection)
set(imbrex_fortran_Intel -recursive)
set(imbrex_fortran_IntelLLVM -recursive)
set(imbrex_fortran_NVHPC -Mrecursive)
set(imbrex_fortran_versions GNU "GNU Fortran" Intel "ifort" IntelLLVM "ifx" NVHPC "nvfortran")

# imbrex_find_fortran() sets CMAKE_Fortran_COMPILER, to NOTFOUND where there is none. A cross build
# has one only if its toolchain file names it: a search would find the compiler of this machine.
# check_language() keeps what it finds in the cache, NOTFOUND too: who installs a compiler after the
# first configuration would never get Fortran.
macro(imbrex_find_fortran)
  if(NOT CMAKE_Fortran_COMPILER)
    unset(CMAKE_Fortran_COMPILER CACHE)
    unset(CMAKE_Fortran_COMPILER)
  endif()
  if(CMAKE_Fortran_COMPILER OR NOT CMAKE_CROSSCOMPILING)
    check_language(Fortran)
  endif()
endmacro()

# imbrex_add_fortran(<source>...): imbrex::fortran, of this project. The language is enabled.
function(imbrex_add_fortran)
  add_library(imbrex_fortran STATIC ${ARGN})
  add_library(imbrex::fortran ALIAS imbrex_fortran)
  set(modules ${CMAKE_CURRENT_BINARY_DIR}/imbrex_modules)
  set_target_properties(imbrex_fortran PROPERTIES Fortran_MODULE_DIRECTORY ${modules}
    POSITION_INDEPENDENT_CODE ON)
  target_include_directories(imbrex_fortran PUBLIC ${modules})
  target_compile_options(imbrex_fortran PUBLIC
    "$<$<COMPILE_LANGUAGE:Fortran>:${imbrex_fortran_${CMAKE_Fortran_COMPILER_ID}}>")
  target_link_libraries(imbrex_fortran PUBLIC imbrex::imbrex)
endfunction()
