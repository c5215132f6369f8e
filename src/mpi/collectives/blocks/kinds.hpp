// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace imbrex::mpi::blocks {

// What the ranks must agree on lest parts of different collectives meet: it is in the tags.
enum class Kind : std::uint8_t {
  alltoall,
  allgather,
  gather,
  scatter,
  broadcast,
  allreduce,
  neighbor_alltoall,
  neighbor_allgather
};

}  // namespace imbrex::mpi::blocks
