// SPDX-License-Identifier: BSD-3-Clause
// The language that the public headers need. Each public header includes this one first, so that a
// compiler for an older C++ prints one error, which says the reason.
#pragma once

#if __cplusplus < 202002L
#error "imbrex needs C++20: compile with -std=c++20 or a later standard"
#include "imbrex needs C++20"  // no such file: the compiler stops here
#endif
