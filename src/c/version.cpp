// SPDX-License-Identifier: BSD-3-Clause
// Which imbrex this library is, for C++ and C. CMake's project() alone names the version.
#include "imbrex/imbrex.h"
#include "imbrex/runtime.hpp"

#pragma GCC visibility push(default)

const char* imbrex::version() noexcept { return IMBREX_VERSION; }

extern "C" const char* imbrex_version(void) { return imbrex::version(); }

#pragma GCC visibility pop
