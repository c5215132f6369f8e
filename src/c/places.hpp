// SPDX-License-Identifier: BSD-3-Clause
// Source locations of code that is not C++. They are never freed, because a program has few of
// them.
#pragma once

#include <source_location>

#pragma GCC visibility push(default)

namespace imbrex::c {

// Thread safety: any thread. `file` is a literal, or lives as long; null: unknown.
[[nodiscard]] std::source_location place(const char* file, int line);

}  // namespace imbrex::c

#pragma GCC visibility pop
