// SPDX-License-Identifier: BSD-3-Clause
// The neighbours of this rank in the topology of a communicator, and the matching of blocks where
// two ranks are neighbours more than once.
#pragma once

#include <mpi.h>

#include <vector>

namespace imbrex::mpi::blocks {

struct Neighbor {
  int rank = MPI_PROC_NULL;
  // The number of earlier edges from this source to this destination: the block that leaves by edge
  // k arrives by edge k.
  int edge = 0;
};

struct Neighbors {
  std::vector<Neighbor> sources;       // in the order of the blocks to receive
  std::vector<Neighbor> destinations;  // in the order of the blocks to send
  [[nodiscard]] int most_edges() const noexcept;  // between this rank and another one, one way
};

// Throws Error if `comm` has no topology, and MpiError. Local: sends no message.
[[nodiscard]] Neighbors neighbors_of(const char* call, MPI_Comm comm);

}  // namespace imbrex::mpi::blocks
