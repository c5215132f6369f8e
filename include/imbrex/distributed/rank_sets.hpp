// SPDX-License-Identifier: BSD-3-Clause
// The calls of MPI that data.hpp, future_space.hpp, remote.hpp and work_pool.hpp need: which ranks
// take part, and a number that all of them know. Included by these headers.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

#include "imbrex/detail/distributed/members.hpp"
#include "imbrex/distributed/ranks.h"
#include "imbrex/error.hpp"

namespace imbrex::detail {

inline void refuse_inter(const MPI_Comm comm, const std::string& what) {
  int inter = 0;
  if (MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) {
    throw Error("imbrex: " + what + " on a communicator that MPI refuses, or in an event handler");
  }
  if (inter == 0) return;
  throw Error("imbrex: " + what + " on an inter-communicator: use MPI_Intercomm_merge first");
}
inline void refuse_unknown(const int world_rank, const std::string& what) {
  if (world_rank < 0) throw Error("imbrex: " + what + " that is outside of MPI_COMM_WORLD");
}

// Returns the ranks of `comm`, which take part in `what`. Collective. Suspends. Throws Error on all
// ranks.
inline Members members_of(const MPI_Comm comm, const std::string& what, const bool nodes = false) {
  require_messages(what);
  refuse_inter(comm, what);
  int size = 0;
  MPI_Comm_size(comm, &size);
  Members members;
  members.world.resize(static_cast<std::size_t>(size));
  if (nodes) members.nodes.resize(static_cast<std::size_t>(size));
  members.id = imbrex_members(comm, members.world.data(), nodes ? members.nodes.data() : nullptr);
  for (const int one : members.world) refuse_unknown(one, what + " with a rank");
  return members;
}

// The rank of MPI_COMM_WORLD that a remote call to `rank` of `comm` runs on.
inline int world_rank(const MPI_Comm comm, const int rank) {
  if (comm == MPI_COMM_WORLD) return rank;
  refuse_inter(comm, "a remote call");
  int size = 0;
  MPI_Comm_size(comm, &size);
  if (rank < 0 || rank >= size) {
    throw Error("imbrex: a remote call to rank " + std::to_string(rank) +
                " of a communicator that has " + std::to_string(size) + " ranks");
  }
  int found = 0;
  imbrex_world_ranks(comm, 1, &rank, &found);
  refuse_unknown(found, "a remote call to rank " + std::to_string(rank) + " of a communicator");
  return found;
}

}  // namespace imbrex::detail
