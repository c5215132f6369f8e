// SPDX-License-Identifier: BSD-3-Clause
// Checks of invariants and of contracts that are cheap to see. A failed check prints the condition,
// the values and the running task, and aborts.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

struct sigaction;

namespace imbrex::base {

// Names the running task, for messages; the scheduler sets it once, since base/ knows no task.
using Describe = std::string (*)();
void set_describe(Describe describe) noexcept;

[[noreturn]] void fail(const char* file, int line, const std::string& what) noexcept;

// Ends the program by SIGABRT, after a message with the reason. A signal handler of an MPI library
// is not called, because it would print a backtrace of imbrex below that message; a handler of the
// program is called.
[[noreturn]] void abort() noexcept;
// Removes those handlers, for code that ends the program in another way.
void drop_backtraces() noexcept;
// Whether drop_backtraces() was called and a later handler skips `handler`.
[[nodiscard]] bool is_dropped(const struct sigaction& handler) noexcept;

// Prints "imbrex: ", `text` and a line end on standard error, at once.
void report(const std::string& text) noexcept;

// Writes all of `text` to the descriptor. Returns 0, or the errno of the failure; adds the number
// of written bytes to `written`, if that is not null. No signal is raised: a report must not end
// the program where a pipe has no reader or a file may not grow.
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
