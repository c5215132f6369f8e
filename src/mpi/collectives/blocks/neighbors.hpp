// SPDX-License-Identifier: BSD-3-Clause
// The neighbours of this rank in the topology of a communicator, and which block of a neighbour
// belongs to which of ours where two ranks are neighbours more than once.
#pragma once

#include <mpi.h>

#include <vector>

namespace imbrex::mpi::blocks {

struct Neighbor {
  int rank = MPI_PROC_NULL;
  // How many edges from the same source to the same destination come before this one: the block
  // that leaves by edge k is the one that arrives by edge k.
  int edge = 0;
};

struct Neighbors {
  std::vector<Neighbor> sources;       // in the order of the blocks to receive
  std::vector<Neighbor> destinations;  // in the order of the blocks to send
  [[nodiscard]] int most_edges() const noexcept;  // between this rank and another one, one way
};

// Throws Error if `comm` has no topology, and MpiError. Asks MPI for what it has here: no message.
[[nodiscard]] Neighbors neighbors_of(const char* call, MPI_Comm comm);

}  // namespace imbrex::mpi::blocks
