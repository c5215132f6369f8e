// SPDX-License-Identifier: BSD-3-Clause
// Messages, in the manner of libgomp, or of libomp where the process needs no libgomp: programs and
// their tests look for the prefix.
#pragma once

namespace imbrex::omp {

[[noreturn, gnu::format(printf, 1, 2), gnu::cold]] void fatal(const char* format, ...);
[[gnu::format(printf, 1, 2), gnu::cold]] void warn(const char* format, ...);

}  // namespace imbrex::omp
