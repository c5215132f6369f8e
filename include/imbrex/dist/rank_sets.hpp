// SPDX-License-Identifier: BSD-3-Clause
// What future_space.hpp, remote.hpp and work_pool.hpp ask of MPI itself: who takes part, and a
// number that all of them know. Included by them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "imbrex/detail/dist/spaces.hpp"
#include "imbrex/error.hpp"

namespace imbrex::detail {

// MPI_Init opens active messages for a program that includes this.
inline const bool wants_messages = want_messages();

// The ranks of `comm`, which is no inter-communicator, as
// MPI_COMM_WORLD numbers them; below 0 where it has no such rank.
inline std::vector<int> translated_ranks(const MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size)), world(ranks.size());
  for (int i = 0; i < size; ++i) ranks[static_cast<std::size_t>(i)] = i;
  MPI_Group group = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_translate_ranks(group, size, ranks.data(), all, world.data());
  MPI_Group_free(&group);
  MPI_Group_free(&all);
  return world;
}

inline std::vector<int> world_ranks(const MPI_Comm comm) {
  int inter = 0;
  MPI_Comm_test_inter(comm, &inter);
  if (inter != 0) throw Error("imbrex: an inter-communicator for a FutureSpace or a remote call");
  return translated_ranks(comm);
}

inline int world_rank(const MPI_Comm comm, const int rank) {
  if (comm == MPI_COMM_WORLD) return rank;
  const std::vector<int> ranks = world_ranks(comm);
  if (rank >= 0 && static_cast<std::size_t>(rank) < ranks.size()) {
    return ranks[static_cast<std::size_t>(rank)];
  }
  throw Error("imbrex: a remote call to rank " + std::to_string(rank) +
              " of a communicator that has " + std::to_string(ranks.size()));
}

// A number that `draw` makes on the first rank.
inline std::uint64_t agree_on_id(const MPI_Comm comm, std::uint64_t (*const draw)()) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::uint64_t id = rank == 0 ? draw() : 0;
  MPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm);
  return id;
}

}  // namespace imbrex::detail
