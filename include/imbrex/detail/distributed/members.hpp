// SPDX-License-Identifier: BSD-3-Clause
// The ranks of an object that spans ranks. Names no MPI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace imbrex::detail {

struct Members {
  std::uint64_t id = 0;    // the same number on all ranks
  std::vector<int> world;  // as MPI_COMM_WORLD numbers them
  std::vector<int> nodes;  // equal for ranks that share memory; empty: unknown
};
// Throws Error if messages between ranks are not open, or in a callback, where nothing can wait for
// other ranks; the text names `what`.
void require_messages(const std::string& what);

}  // namespace imbrex::detail

#pragma GCC visibility pop
