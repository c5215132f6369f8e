// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/buffers.hpp"

#include <algorithm>

#include "mpi/abi/inquiries.hpp"

namespace imbrex::mpi::check::buffers {

namespace {

bool between_groups(MPI_Comm comm) {
  int answer = 0;
  PMPI_Comm_test_inter(comm, &answer);
  return answer != 0;
}

// The neighbours in a grid. A dimension that is not periodic has none beyond its edge.
Peers neighbors_in_grid(MPI_Comm comm) {
  int dimensions = 0;
  PMPI_Cartdim_get(comm, &dimensions);
  Peers peers;
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    int below = MPI_PROC_NULL;
    int above = MPI_PROC_NULL;
    PMPI_Cart_shift(comm, dimension, 1, &below, &above);
    peers.in.push_back(below != MPI_PROC_NULL);
    peers.in.push_back(above != MPI_PROC_NULL);
  }
  peers.out = peers.in;
  return peers;
}

}  // namespace

int rank_in(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size;
}

MPI_Count extent_of(MPI_Datatype type) {
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  PMPI_Type_get_extent_x(type, &lower, &extent);
  return extent;
}

Role role(int root, MPI_Comm comm) {
  if (between_groups(comm)) {
    return {.root = root == MPI_ROOT, .member = root != MPI_ROOT && root != MPI_PROC_NULL};
  }
  return {.root = rank_in(comm) == root, .member = true};
}

Peers everyone(MPI_Comm comm) {
  int size = 0;
  if (between_groups(comm)) {
    PMPI_Comm_remote_size(comm, &size);
  } else {
    size = size_of(comm);
  }
  const std::vector<bool> all(static_cast<std::size_t>(size), true);
  return {all, all};
}

Peers neighbors(MPI_Comm comm) {
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &topology);
  if (topology == MPI_CART) return neighbors_in_grid(comm);
  const Degrees degrees = degrees_of(comm).value_or(Degrees());
  return {std::vector<bool>(static_cast<std::size_t>(degrees.out), true),
          std::vector<bool>(static_cast<std::size_t>(degrees.in), true)};
}

void add(Buffers& all, const void* buffer, MPI_Count count, MPI_Datatype type,
         Direction direction) {
  if (buffer == MPI_IN_PLACE || buffer == nullptr || count == 0) return;
  all.push_back({buffer, count, type, direction == Direction::writes});
}

void add_blocks(Buffers& all, const void* buffer, MPI_Count count, MPI_Datatype type,
                const std::vector<bool>& peers, Direction direction) {
  if (buffer == MPI_IN_PLACE || peers.empty()) return;
  if (std::ranges::find(peers, false) == peers.end()) {
    add(all, buffer, count * static_cast<MPI_Count>(peers.size()), type, direction);
    return;
  }
  const MPI_Count bytes = count * extent_of(type);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (!peers[i]) continue;
    add(all, behind(buffer, static_cast<MPI_Count>(i) * bytes), count, type, direction);
  }
}

}  // namespace imbrex::mpi::check::buffers
