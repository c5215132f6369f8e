// SPDX-License-Identifier: BSD-3-Clause
// The waist for graphs that run once in each iteration of a loop: what imbrex::iterate() and its
// forms for C and Fortran reduce to.
#pragma once

#include <cstdint>
#include <exception>
#include <source_location>

#include "imbrex/detail/waist.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

struct IterateSpec {
  std::int64_t count;
  std::int64_t period;
  std::source_location where;
  const char* call;  // of the program, for messages
};
// Calls body(argument, i) for each i of the first period, and runs the tasks that it creates in all
// `count` iterations. Suspends. Returns what the tasks have thrown; null: nothing. Throws what the
// body throws, and Error where it refuses the loop.
[[nodiscard]] std::exception_ptr iterate(const IterateSpec& spec,
                                         void (*body)(void* argument, std::int64_t iteration),
                                         void* argument);

// The iteration of the running task, or of the nearest task above it that belongs to a loop; -1:
// there is none. Any thread; never suspends.
[[nodiscard]] std::int64_t iteration() noexcept;

// The iteration of the running task is the last. Throws Error unless the task decides.
void stop_iterating();

// No iteration behind that of the running task will run, as far as is known now. In a task of
// iterate() only; never suspends.
[[nodiscard]] bool is_last_iteration() noexcept;

// Throws Error unless the body of iterate() runs.
void check_iterates(const char* what);

}  // namespace imbrex::detail

#pragma GCC visibility pop
