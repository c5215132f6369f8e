// SPDX-License-Identifier: BSD-3-Clause
// Checks of our own invariants and of contracts that are cheap to see. A failed check prints what,
// with which values, in which task, and aborts.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

struct sigaction;

namespace imbrex::base {

// Says who runs now, for messages; set once by the scheduler, since base/ knows no task.
using Describe = std::string (*)();
void set_describe(Describe describe) noexcept;

[[noreturn]] void fail(const char* file, int line, const std::string& what) noexcept;

// Ends the program by SIGABRT, after a message that says why. A handler of an MPI library, which
// would print a backtrace of this library's functions below that message, is not called; one of the
// program's is.
[[noreturn]] void abort() noexcept;
// The first half of that, for who ends the program in another way.
void drop_backtraces() noexcept;
// Whether drop_backtraces() was called, and a handler that stands before this one passes it over.
[[nodiscard]] bool is_dropped(const struct sigaction& handler) noexcept;

// A line on standard error that starts with "imbrex: ", written at once.
void report(const std::string& text) noexcept;

// Writes all of `text` to the descriptor. Returns 0, or the errno of what kept it from that; the
// number of bytes that were written is added to `written`, if that is not null. No signal comes of
// it: what tells of a program must not end it, where a pipe has no reader or a file may not grow.
int write_all(int descriptor, std::string_view text, std::size_t* written) noexcept;

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
