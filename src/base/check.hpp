// SPDX-License-Identifier: BSD-3-Clause
// Checks of our own invariants and of contracts that are cheap to see. A failed check prints what,
// with which values, in which task, and aborts.
#pragma once

#include <fmt/format.h>

#include <string>

namespace imbrex::base {

// Says who runs now, for messages; set once by the scheduler, since base/ knows no task.
using Describe = std::string (*)();
void set_describe(Describe describe) noexcept;

[[noreturn]] void fail(const char* file, int line, const std::string& what) noexcept;

// A line on standard error that starts with "imbrex: ", written at once.
void report(const std::string& text) noexcept;

}  // namespace imbrex::base

#define IMBREX_CHECK(condition, ...)                                            \
  do {                                                                          \
    if (!(condition)) [[unlikely]]                                              \
      ::imbrex::base::fail(__FILE__, __LINE__, ::fmt::format(__VA_ARGS__));     \
  } while (false)

#ifdef NDEBUG
#define IMBREX_ASSERT(condition, ...) \
  do {                                \
  } while (false)
#else
#define IMBREX_ASSERT(condition, ...) IMBREX_CHECK(condition, __VA_ARGS__)
#endif
