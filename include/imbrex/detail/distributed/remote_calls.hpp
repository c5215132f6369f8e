// SPDX-License-Identifier: BSD-3-Clause
// The functions of src/distributed that remote.hpp calls: calls whose arguments and results are
// bytes. Names no MPI.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "imbrex/values/called_rank.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

// Before MPI_Init: MPI_Init shall let all ranks take calls, if one rank says so. From then on an
// idle worker of each rank polls for messages, and does not sleep. Later it does nothing. Any
// thread; never suspends.
void take_calls_at_init() noexcept;

using AnyFunction = void();

// Two addresses of code, in any modules of the program.
struct Callee {
  void (*run)(AnyFunction* function, std::span<const std::byte> arguments,
              std::vector<std::byte>& result);
  AnyFunction* function;
};
// Called once, by the thread that handles the message. Must not throw, nor wait.
using CallEnded = std::function<void(const std::exception_ptr& error,
                                     std::span<const std::byte> result)>;

// Calls `callee` on a rank of MPI_COMM_WORLD. Suspends for room to send. Throws Error if nothing
// was sent; `ended` is then not called. Thread safety: any thread.
void call_on(const CalledRank& rank, const Callee& callee, std::vector<std::byte> arguments,
             CallEnded ended);

}  // namespace imbrex::detail

#pragma GCC visibility pop
