// SPDX-License-Identifier: BSD-3-Clause
// Who takes part in what spans ranks. Names no MPI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace imbrex {

/// Before MPI_Init: it shall open messages between the ranks of MPI_COMM_WORLD, for data, futures,
/// pools and calls that span ranks. One rank that calls it is enough. Throws Error if MPI_Init has
/// been called, and has not opened them. Thread safety: any thread.
void open_messages();

namespace detail {

struct Members {
  std::uint64_t id = 0;    // the same on all of them
  std::vector<int> world;  // as MPI_COMM_WORLD numbers them
  std::vector<int> nodes;  // equal for ranks that share memory; empty: not asked for
};
// Throws Error if messages between ranks are not open: `what` needs them.
void require_messages(const std::string& what);

}  // namespace detail
}  // namespace imbrex

#pragma GCC visibility pop
