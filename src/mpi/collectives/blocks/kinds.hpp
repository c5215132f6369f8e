// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace imbrex::mpi::blocks {

// The kind is in the tags, so that parts of different collectives do not meet.
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
