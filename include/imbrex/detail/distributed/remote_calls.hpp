// SPDX-License-Identifier: BSD-3-Clause
// What remote.hpp sees of src/distributed: calls whose arguments and results are bytes. Names no
// MPI.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <source_location>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace imbrex {

/// Before MPI_Init: as open_messages(), and all ranks can be called. One rank that calls it is
/// enough. From MPI_Init to MPI_Finalize a worker that has nothing to do asks for messages then, on
/// all ranks, and does not sleep. Throws Error if MPI_Init has been called and has not opened
/// calls. Thread safety: any thread.
void open_calls();

/// A rank, and where the program calls a function on it: what a number that is given to call()
/// becomes.
struct CalledRank {
  /// Made of a number, below the size of the communicator; call() throws Error for another one.
  CalledRank(const int its_rank,  // NOLINT: converts
             const std::source_location& place = std::source_location::current()) noexcept
      : rank(its_rank), where(place) {}
  int rank;
  std::source_location where;
};

}  // namespace imbrex

namespace imbrex::detail {

using AnyFunction = void();

// Two addresses of code, of any modules of the program.
struct Callee {
  void (*run)(AnyFunction* function, std::span<const std::byte> arguments,
              std::vector<std::byte>& result);
  AnyFunction* function;
};
// Called once, by whoever handles messages. Does not throw, nor wait.
using CallEnded = std::function<void(const std::exception_ptr& error,
                                     std::span<const std::byte> result)>;

// On a rank of MPI_COMM_WORLD. May suspend for room to send. Throws Error if nothing was sent; then
// `ended` is not called. Thread safety: any thread.
void call_on(const CalledRank& rank, const Callee& callee, std::vector<std::byte> arguments,
             CallEnded ended);

}  // namespace imbrex::detail

#pragma GCC visibility pop
