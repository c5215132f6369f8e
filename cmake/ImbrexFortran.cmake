# SPDX-License-Identifier: BSD-3-Clause
# imbrex_find_fortran() sets CMAKE_Fortran_COMPILER, to NOTFOUND where there is none.

include(CheckLanguage)

# check_language() keeps what it finds in the cache, NOTFOUND too: who installs a compiler after the
# first configuration would never get Fortran.
macro(imbrex_find_fortran)
  if(NOT CMAKE_Fortran_COMPILER)
    unset(CMAKE_Fortran_COMPILER CACHE)
    unset(CMAKE_Fortran_COMPILER)
  endif()
  check_language(Fortran)
endmacro()
