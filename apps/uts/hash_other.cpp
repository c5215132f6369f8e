// SPDX-License-Identifier: BSD-3-Clause
// For processors whose instructions for SHA-1 the program does not know; else hash_x86.cpp.
#include "expand.hpp"

namespace uts {

bool processor_has_sha() noexcept { return false; }
Expand expand_with_sha() noexcept { return nullptr; }

}  // namespace uts
