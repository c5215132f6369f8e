// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/calls/decompose.hpp"

#include "mpi/engine/active.hpp"
#include "mpi/sends/begin.hpp"

namespace imbrex::mpi::decompose {

namespace {

// Whether MPI will refuse what this rank says of its blocks: then its own call says how.
bool is_wrong(const Side& side, const int size) noexcept {
  for (int rank = 0; rank < size; ++rank) {
    const MPI_Count count = side.count_of(rank);
    if (count < 0 || (count > 0 && side.type_of(rank) == MPI_DATATYPE_NULL)) return true;
  }
  return false;
}

}  // namespace

bool accepts(const Asked& it) noexcept {
  if (!in_service() || it.comm == MPI_COMM_NULL) return false;
  int between_groups = 1;
  if (PMPI_Comm_test_inter(it.comm, &between_groups) != MPI_SUCCESS || between_groups != 0) {
    return false;
  }
  if (it.shape == Shape::alltoall && it.send.address == MPI_IN_PLACE) return false;
  int size = 0;
  int rank = 0;
  PMPI_Comm_size(it.comm, &size);
  PMPI_Comm_rank(it.comm, &rank);
  const bool rooted = it.shape == Shape::gather || it.shape == Shape::scatter;
  if (rooted && (it.root < 0 || it.root >= size)) return false;
  if (it.varies) {
    const bool sends = it.shape != Shape::scatter || rank == it.root;
    const bool receives = it.shape != Shape::gather || rank == it.root;
    const bool own_sent = it.send.address == MPI_IN_PLACE;
    const bool own_here = it.receive.address == MPI_IN_PLACE;
    return !(sends && !own_sent && is_wrong(it.send, size)) &&
           !(receives && !own_here && is_wrong(it.receive, size));
  }
  // Of the sides that count on this rank, one that says how long a block is.
  const bool by_receive = it.send.address == MPI_IN_PLACE ||
                          (it.shape == Shape::scatter && it.receive.address != MPI_IN_PLACE);
  const Side& side = by_receive ? it.receive : it.send;
  const std::int64_t bytes = sends::bytes_of(side.count, side.type);
  const std::int64_t least = bytes_least.load(std::memory_order_relaxed);
  return bytes >= least && bytes > 0;
}

}  // namespace imbrex::mpi::decompose
