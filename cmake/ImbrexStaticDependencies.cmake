# SPDX-License-Identifier: BSD-3-Clause
# IMBREX_STATIC_DEPENDENCIES: hwloc, Boost.Context and fmt become parts of imbrex's libraries, which
# hide them. A package that is used on many systems (the wheel) then needs the C library, the C++
# library and an MPI only. A program or its MPI may load another version of hwloc.

# Debian's libhwloc.a, changed so that a shared library can hold it: hwloc_alone.c says why.
function(imbrex_link_static_hwloc)
  find_library(IMBREX_HWLOC_STATIC libhwloc.a HINTS ${IMBREX_HWLOC_LIBRARY_DIRS})
  if(NOT IMBREX_HWLOC_STATIC OR NOT CMAKE_OBJCOPY)
    message(FATAL_ERROR "imbrex: IMBREX_STATIC_DEPENDENCIES needs libhwloc.a and objcopy")
  endif()
  set(hwloc ${PROJECT_BINARY_DIR}/hwloc/libhwloc.a)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/hwloc)
  execute_process(COMMAND ${CMAKE_OBJCOPY} --redefine-sym dlopen=imbrex_hwloc_dlopen
    --redefine-sym stderr=imbrex_hwloc_stderr --redefine-sym stdout=imbrex_hwloc_stdout
    --redefine-sym program_invocation_name=imbrex_hwloc_program
    ${IMBREX_HWLOC_STATIC} ${hwloc} COMMAND_ERROR_IS_FATAL ANY)
  add_library(imbrex_hwloc_alone STATIC ${PROJECT_SOURCE_DIR}/cmake/hwloc_alone.c)
  set_target_properties(PkgConfig::IMBREX_HWLOC PROPERTIES
    INTERFACE_LINK_LIBRARIES "${hwloc};imbrex_hwloc_alone"
    INTERFACE_LINK_OPTIONS "LINKER:--exclude-libs,libhwloc.a:libboost_context.a")
endfunction()

# fmt::fmt: Debian has no static library of it, but all of its source as headers.
function(imbrex_find_static_fmt)
  find_path(IMBREX_FMT_INCLUDE_DIR fmt/format-inl.h)
  if(IMBREX_FMT_INCLUDE_DIR)
    add_library(imbrex_fmt_alone STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt_alone.cpp)
    target_link_options(imbrex_fmt_alone INTERFACE LINKER:--exclude-libs,libimbrex_fmt_alone.a)
    add_library(fmt::fmt ALIAS imbrex_fmt_alone)
    set(fmt_FOUND TRUE PARENT_SCOPE)
  endif()
endfunction()
