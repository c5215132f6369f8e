// SPDX-License-Identifier: BSD-3-Clause
// The version of this library, for C++ and C, and the check that it fits the headers of a program.
#include "imbrex/version.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "imbrex/imbrex.h"
#include "imbrex/runtime.hpp"

#define IMBREX_TEXT_OF(number) #number
#define IMBREX_TEXT(number) IMBREX_TEXT_OF(number)

namespace {

// The file of the program or library that this address is in.
const char* file_of(const void* address) {
  Dl_info found{};
  return dladdr(address, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname
                                                                    : "this program";
}

}  // namespace

#pragma GCC visibility push(default)

const char* imbrex::version() noexcept {
  return IMBREX_TEXT(IMBREX_VERSION_MAJOR) "." IMBREX_TEXT(IMBREX_VERSION_MINOR) "." IMBREX_TEXT(
      IMBREX_VERSION_PATCH);
}

extern "C" const char* imbrex_version(void) { return imbrex::version(); }

extern "C" void imbrex_compare_version(const int major, const int minor, const int patch,
                                       const char* header) {
  if (major == IMBREX_VERSION_MAJOR && minor == IMBREX_VERSION_MINOR &&
      patch <= IMBREX_VERSION_PATCH) {
    return;
  }
  // The text is in the program or library that was compiled with the header.
  std::fprintf(stderr,
               "imbrex: %s was compiled with the headers of imbrex %d.%d.%d (%s), but runs with "
               "the library of imbrex %s (%s). Compile it with the headers of that library, or let "
               "the dynamic linker find the library of %d.%d (LD_LIBRARY_PATH, -rpath).\n",
               file_of(header), major, minor, patch, header,
               imbrex::version(), file_of(reinterpret_cast<const void*>(&imbrex::version)), major,
               minor);
  std::_Exit(1);
}

#pragma GCC visibility pop
