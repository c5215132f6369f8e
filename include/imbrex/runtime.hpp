// SPDX-License-Identifier: BSD-3-Clause
// The runtime as an object, for programs and tests that do not want the options of the environment.
// Other programs do not need it: the first task starts the runtime, the end of the program stops
// it.
#pragma once

#include "imbrex/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

#pragma GCC visibility push(default)

namespace imbrex {

/// A field left as it is takes the value of its IMBREX_* option.
struct RuntimeOptions {
  int workers = 0;              // IMBREX_WORKERS
  std::string policy = {};      // IMBREX_POLICY
  std::size_t stack_bytes = 0;  // IMBREX_STACK_SIZE
  int tasks_ahead = -1;         // IMBREX_TASKS_AHEAD; 0: any number
  int bind = -1;                // IMBREX_BIND; 0 or 1
  std::string places = {};      // IMBREX_PLACES
};

/// Starts the runtime. If main makes it, main becomes worker 0 and its code a task, until the
/// destructor, which first waits for every task. REQUIRES: an object made in main is destroyed in
/// main; any other one by any thread, outside of tasks. Throws Error if the runtime runs already,
/// if a value of `config` is malformed, or if the system gives no threads or stacks. A malformed
/// option of the environment ends the process.
class Runtime {
 public:
  /// Starts the runtime; throws Error as the class says. The destructor waits for every task.
  /// Suspends then.
  explicit Runtime(const RuntimeOptions& config = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
};

/// The version of the library that the program runs with, such as "0.1.0". Any thread; never
/// suspends.
[[nodiscard]] const char* version() noexcept;

/// The number of threads that run tasks; 0 before the start. Any thread; never suspends.
[[nodiscard]] int worker_count() noexcept;

/// Counts since the start, and of live objects now. Exact only when no task runs.
struct Statistics {
  std::uint64_t tasks = 0;            // tasks that have run
  std::uint64_t steals = 0;
  std::uint64_t far_steals = 0;       // in a tree of places: steals that were not from the nearest
                                      // victims
  std::uint64_t suspensions = 0;
  std::uint64_t polls = 0;
  std::uint64_t live_tasks = 0;       // descriptors in use, without root tasks
  std::uint64_t suspended_tasks = 0;  // stacks of suspended tasks
  std::uint64_t descriptor_bytes = 0; // mapped for tasks, in use or not
  std::uint64_t stack_count = 0;      // mapped, in use or not
};
/// What was counted so far; all 0 before the start. Any thread; never suspends.
[[nodiscard]] Statistics statistics() noexcept;

}  // namespace imbrex

#pragma GCC visibility pop
