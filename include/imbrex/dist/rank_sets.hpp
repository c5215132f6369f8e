// SPDX-License-Identifier: BSD-3-Clause
// What future_space.hpp, remote.hpp and work_pool.hpp ask of MPI itself: who takes part, and a
// number that all of them know. Included by them.
#pragma once

#include "imbrex/detail/language.hpp"

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

// `ranks` of `comm`, which is no inter-communicator, as MPI_COMM_WORLD numbers them; below 0 where
// it has no such rank.
inline std::vector<int> translated(const MPI_Comm comm, const std::vector<int>& ranks) {
  std::vector<int> world(ranks.size());
  MPI_Group group = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_translate_ranks(group, static_cast<int>(ranks.size()), ranks.data(), all,
                            world.data());
  MPI_Group_free(&group);
  MPI_Group_free(&all);
  return world;
}
// All ranks of it.
inline std::vector<int> translated_ranks(const MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) ranks[static_cast<std::size_t>(i)] = i;
  return translated(comm, ranks);
}

inline void refuse_inter(const MPI_Comm comm, const std::string& what) {
  int inter = 0;
  MPI_Comm_test_inter(comm, &inter);
  if (inter != 0) throw Error("imbrex: " + what + " on an inter-communicator");
}
inline void refuse_unknown(const int world_rank, const std::string& what) {
  if (world_rank < 0) throw Error("imbrex: " + what + " that is not of MPI_COMM_WORLD");
}

// Those that take part in `what`.
inline std::vector<int> world_ranks(const MPI_Comm comm,
                                    const std::string& what = "a space over ranks") {
  refuse_inter(comm, what);
  std::vector<int> ranks = translated_ranks(comm);
  for (const int one : ranks) refuse_unknown(one, what + " with a rank");
  return ranks;
}

// The one of a remote call.
inline int world_rank(const MPI_Comm comm, const int rank) {
  if (comm == MPI_COMM_WORLD) return rank;
  refuse_inter(comm, "a remote call");
  int size = 0;
  MPI_Comm_size(comm, &size);
  if (rank < 0 || rank >= size) {
    throw Error("imbrex: a remote call to rank " + std::to_string(rank) +
                " of a communicator that has " + std::to_string(size));
  }
  const int found = translated(comm, {rank})[0];
  refuse_unknown(found, "a remote call to rank " + std::to_string(rank) + " of a communicator");
  return found;
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
