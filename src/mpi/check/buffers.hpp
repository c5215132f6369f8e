// SPDX-License-Identifier: BSD-3-Clause
// The memory of the caller that an operation uses: for each collective of calls.def, and each
// operation on remote memory there, a function of that name and with its arguments. Used by
// interpose.cpp under IMBREX_CHECK; knows no operation in flight.
//
// REQUIRES, for all: arguments that MPI has accepted. Arguments that MPI ignores are not read.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/check/checks.hpp"

namespace imbrex::mpi::check::buffers {

// This rank's part in an operation with a root. In an intercommunicator it may have neither part.
struct Role {
  bool root;
  bool member;  // one of the ranks that the root serves; in an intracommunicator the root is one,
                // too
};
[[nodiscard]] Role role(int root, MPI_Comm comm);

// The ranks that this rank sends to and receives from, in the order of its blocks; false:
// MPI_PROC_NULL, whose block is not used.
struct Peers {
  std::vector<bool> out;
  std::vector<bool> in;
};
[[nodiscard]] Peers everyone(MPI_Comm comm);
[[nodiscard]] Peers neighbors(MPI_Comm comm);

[[nodiscard]] MPI_Count extent_of(MPI_Datatype type);
[[nodiscard]] int rank_in(MPI_Comm comm);
[[nodiscard]] int size_of(MPI_Comm comm);

enum class Direction : bool { reads, writes };

// One buffer, unless its address has a special meaning.
void add(Buffers& all, const void* buffer, MPI_Count count, MPI_Datatype type,
         Direction direction);
// A block of that size for each peer, one after the other.
void add_blocks(Buffers& all, const void* buffer, MPI_Count count, MPI_Datatype type,
                const std::vector<bool>& peers, Direction direction);

inline const void* behind(const void* buffer, MPI_Count bytes) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                       static_cast<std::uintptr_t>(bytes));
}

// A block for each peer, at its displacement.
template <class Count, class Place>
void add_placed(Buffers& all, const void* buffer, const Count counts[], const Place places[],
                MPI_Datatype type, const std::vector<bool>& peers, Direction direction) {
  if (buffer == MPI_IN_PLACE || peers.empty()) return;
  const MPI_Count extent = extent_of(type);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (peers[i]) add(all, behind(buffer, places[i] * extent), counts[i], type, direction);
  }
}

// The variant with a type for each block; displacements are bytes.
template <class Count, class Place>
void add_typed(Buffers& all, const void* buffer, const Count counts[], const Place places[],
               const MPI_Datatype types[], const std::vector<bool>& peers, Direction direction) {
  if (buffer == MPI_IN_PLACE) return;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (peers[i]) add(all, behind(buffer, places[i]), counts[i], types[i], direction);
  }
}

// ---- one root --------------------------------------------------------------------------------

template <class Count>
Buffers Bcast(const void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  Buffers all;
  const Role here = role(root, comm);
  if (here.root || here.member) {
    add(all, buffer, count, type, here.root ? Direction::reads : Direction::writes);
  }
  return all;
}

template <class Count>
Buffers Gather(const void* from, Count from_count, MPI_Datatype from_type, void* to, Count to_count,
               MPI_Datatype to_type, int root, MPI_Comm comm) {
  Buffers all;
  const Role here = role(root, comm);
  if (here.member) add(all, from, from_count, from_type, Direction::reads);
  if (here.root) add_blocks(all, to, to_count, to_type, everyone(comm).in, Direction::writes);
  return all;
}

template <class Count, class Place>
Buffers Gatherv(const void* from, Count from_count, MPI_Datatype from_type, void* to,
                const Count to_counts[], const Place places[], MPI_Datatype to_type, int root,
                MPI_Comm comm) {
  Buffers all;
  const Role here = role(root, comm);
  if (here.member) add(all, from, from_count, from_type, Direction::reads);
  if (here.root) {
    add_placed(all, to, to_counts, places, to_type, everyone(comm).in, Direction::writes);
  }
  return all;
}

template <class Count>
Buffers Scatter(const void* from, Count from_count, MPI_Datatype from_type, void* to,
                Count to_count, MPI_Datatype to_type, int root, MPI_Comm comm) {
  Buffers all;
  const Role here = role(root, comm);
  if (here.root) add_blocks(all, from, from_count, from_type, everyone(comm).out, Direction::reads);
  if (here.member) add(all, to, to_count, to_type, Direction::writes);
  return all;
}

template <class Count, class Place>
Buffers Scatterv(const void* from, const Count from_counts[], const Place places[],
                 MPI_Datatype from_type, void* to, Count to_count, MPI_Datatype to_type, int root,
                 MPI_Comm comm) {
  Buffers all;
  const Role here = role(root, comm);
  if (here.root) {
    add_placed(all, from, from_counts, places, from_type, everyone(comm).out, Direction::reads);
  }
  if (here.member) add(all, to, to_count, to_type, Direction::writes);
  return all;
}

// ---- reductions ------------------------------------------------------------------------------

template <class Count>
Buffers Allreduce(const void* from, void* to, Count count, MPI_Datatype type, MPI_Op, MPI_Comm) {
  Buffers all;
  add(all, from, count, type, Direction::reads);
  add(all, to, count, type, Direction::writes);
  return all;
}

template <class Count>
Buffers Scan(const void* from, void* to, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return Allreduce(from, to, count, type, op, comm);
}

// The first rank gets nothing.
template <class Count>
Buffers Exscan(const void* from, void* to, Count count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm) {
  if (rank_in(comm) != 0) return Allreduce(from, to, count, type, op, comm);
  Buffers all;
  add(all, from == MPI_IN_PLACE ? to : from, count, type, Direction::reads);
  return all;
}

template <class Count>
Buffers Reduce(const void* from, void* to, Count count, MPI_Datatype type, MPI_Op, int root,
               MPI_Comm comm) {
  Buffers all;
  const Role here = role(root, comm);
  if (here.member) add(all, from, count, type, Direction::reads);
  if (here.root) add(all, to, count, type, Direction::writes);
  return all;
}

template <class Count>
Buffers Reduce_scatter_block(const void* from, void* to, Count count, MPI_Datatype type, MPI_Op,
                             MPI_Comm comm) {
  const MPI_Count whole = static_cast<MPI_Count>(count) * size_of(comm);
  Buffers all;
  add(all, from, whole, type, Direction::reads);
  add(all, to, from == MPI_IN_PLACE ? whole : count, type, Direction::writes);
  return all;
}

template <class Count>
Buffers Reduce_scatter(const void* from, void* to, const Count counts[], MPI_Datatype type, MPI_Op,
                       MPI_Comm comm) {
  MPI_Count whole = 0;
  for (int i = 0; i < size_of(comm); ++i) whole += counts[i];
  Buffers all;
  add(all, from, whole, type, Direction::reads);
  add(all, to, from == MPI_IN_PLACE ? whole : counts[rank_in(comm)], type, Direction::writes);
  return all;
}

// ---- each with each --------------------------------------------------------------------------

// Among all ranks, or among neighbours of a topology.
template <Peers (*peers_in)(MPI_Comm)>
struct Exchange {
  template <class Count>
  static Buffers allgather(const void* from, Count from_count, MPI_Datatype from_type, void* to,
                           Count to_count, MPI_Datatype to_type, MPI_Comm comm) {
    Buffers all;
    add(all, from, from_count, from_type, Direction::reads);
    add_blocks(all, to, to_count, to_type, peers_in(comm).in, Direction::writes);
    return all;
  }

  template <class Count, class Place>
  static Buffers allgatherv(const void* from, Count from_count, MPI_Datatype from_type, void* to,
                            const Count to_counts[], const Place places[], MPI_Datatype to_type,
                            MPI_Comm comm) {
    Buffers all;
    add(all, from, from_count, from_type, Direction::reads);
    add_placed(all, to, to_counts, places, to_type, peers_in(comm).in, Direction::writes);
    return all;
  }

  template <class Count>
  static Buffers alltoall(const void* from, Count from_count, MPI_Datatype from_type, void* to,
                          Count to_count, MPI_Datatype to_type, MPI_Comm comm) {
    const Peers peers = peers_in(comm);
    Buffers all;
    add_blocks(all, from, from_count, from_type, peers.out, Direction::reads);
    add_blocks(all, to, to_count, to_type, peers.in, Direction::writes);
    return all;
  }

  template <class Count, class Place>
  static Buffers alltoallv(const void* from, const Count from_counts[], const Place from_places[],
                           MPI_Datatype from_type, void* to, const Count to_counts[],
                           const Place to_places[], MPI_Datatype to_type, MPI_Comm comm) {
    const Peers peers = peers_in(comm);
    Buffers all;
    add_placed(all, from, from_counts, from_places, from_type, peers.out, Direction::reads);
    add_placed(all, to, to_counts, to_places, to_type, peers.in, Direction::writes);
    return all;
  }

  template <class Count, class Place>
  static Buffers alltoallw(const void* from, const Count from_counts[], const Place from_places[],
                           const MPI_Datatype from_types[], void* to, const Count to_counts[],
                           const Place to_places[], const MPI_Datatype to_types[], MPI_Comm comm) {
    const Peers peers = peers_in(comm);
    Buffers all;
    add_typed(all, from, from_counts, from_places, from_types, peers.out, Direction::reads);
    add_typed(all, to, to_counts, to_places, to_types, peers.in, Direction::writes);
    return all;
  }
};

#define IMBREX_EXCHANGE(name, shape)                          \
  template <class... Arguments>                               \
  Buffers name(Arguments... arguments) {                      \
    return Exchange<everyone>::shape(arguments...);           \
  }                                                           \
  template <class... Arguments>                               \
  Buffers Neighbor_##shape(Arguments... arguments) {          \
    return Exchange<neighbors>::shape(arguments...);          \
  }
IMBREX_EXCHANGE(Allgather, allgather)
IMBREX_EXCHANGE(Allgatherv, allgatherv)
IMBREX_EXCHANGE(Alltoall, alltoall)
IMBREX_EXCHANGE(Alltoallv, alltoallv)
IMBREX_EXCHANGE(Alltoallw, alltoallw)
#undef IMBREX_EXCHANGE

// ---- remote memory: the origin's buffers -----------------------------------------------------

template <class Count>
Buffers Rput(const void* buffer, Count count, MPI_Datatype type, auto...) {
  Buffers all;
  add(all, buffer, count, type, Direction::reads);
  return all;
}

template <class Count>
Buffers Raccumulate(const void* buffer, Count count, MPI_Datatype type, auto...) {
  return Rput(buffer, count, type);
}

template <class Count>
Buffers Rget(void* buffer, Count count, MPI_Datatype type, auto...) {
  Buffers all;
  add(all, buffer, count, type, Direction::writes);
  return all;
}

template <class Count>
Buffers Rget_accumulate(const void* from, Count from_count, MPI_Datatype from_type, void* buffer,
                        Count count, MPI_Datatype type, int, MPI_Aint, Count, MPI_Datatype,
                        MPI_Op op, MPI_Win) {
  Buffers all;
  if (op != MPI_NO_OP) add(all, from, from_count, from_type, Direction::reads);
  add(all, buffer, count, type, Direction::writes);
  return all;
}

}  // namespace imbrex::mpi::check::buffers
