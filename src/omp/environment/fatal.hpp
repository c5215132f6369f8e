// SPDX-License-Identifier: BSD-3-Clause
// Messages, in the manner of libgomp, or of libomp where the process needs no libgomp: programs and
// their tests look for the prefix.
#pragma once

#include <atomic>

namespace imbrex::omp {

// True if the process needs LLVM's runtime and not GCC's, as of the last look_for_others().
// Messages, the words that variables take and what they default to are then LLVM's.
extern std::atomic<bool> speaks_llvm;
[[nodiscard]] inline bool is_llvm() noexcept {
  return speaks_llvm.load(std::memory_order_relaxed);
}

[[noreturn, gnu::format(printf, 1, 2), gnu::cold]] void fatal(const char* format, ...);
[[gnu::format(printf, 1, 2), gnu::cold]] void warn(const char* format, ...);
// The value of that variable is malformed, and ignored.
[[gnu::cold]] void refuse_variable(const char* name);

}  // namespace imbrex::omp
