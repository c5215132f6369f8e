// SPDX-License-Identifier: BSD-3-Clause
// The functions of src/distributed that remote.hpp calls: calls whose arguments and results are
// bytes. Names no MPI.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <source_location>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace imbrex {

/// Call it before MPI_Init: like open_messages(), and all ranks can be called. One rank that calls
/// it is enough. From MPI_Init to MPI_Finalize an idle worker of each rank then polls for messages,
/// and does not sleep. Throws Error if MPI_Init has been called and has not opened calls. Thread
/// safety: any thread; never suspends.
void open_calls();

/// A rank, and the place of the call in the program. The number that is given to call() converts to
/// it. Thread safety: a value.
struct CalledRank {
  /// Made of a number below the size of the communicator; call() throws Error for another number.
  CalledRank(const int its_rank,  // NOLINT: converts
             const std::source_location& place = std::source_location::current()) noexcept
      : rank(its_rank), where(place) {}
  int rank;
  std::source_location where;
};

}  // namespace imbrex

namespace imbrex::detail {

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
