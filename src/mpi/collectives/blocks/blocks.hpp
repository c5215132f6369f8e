// SPDX-License-Identifier: BSD-3-Clause
// Collectives that go block by block (IMBREX_PARTIAL): whether a call does (settings.cpp), and how
// it is then carried out (blocks.cpp). Used by the calls, MPI_Init and MPI_Finalize.
//
// All ranks must decide the same. The decision therefore depends only on things that MPI's own
// rules make equal on all ranks: the kind of the call, its communicator and the info of that, the
// bytes of a block where all have one size, MPI_IN_PLACE of an all-to-all; and on the options,
// which MPI_Init compares.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "mpi/abi/switches.hpp"
#include "mpi/collectives/blocks/kinds.hpp"
#include "mpi/engine/engine.hpp"

namespace imbrex::mpi::blocks {

enum class Mode : std::uint8_t {
  off,      // MPI's own calls
  on,       // long blocks go one by one; accesses end early in tasks that ask for it
  release,  // accesses end early in all tasks
  all       // blocks of any length
};
struct Setting {
  Mode mode = Mode::off;
  int parts = 1;  // of each block
  [[nodiscard]] bool operator==(const Setting&) const = default;
};
// The values of IMBREX_PARTIAL and IMBREX_PARTIAL_PARTS. Throws Error.
[[nodiscard]] Setting setting_by_options();

// In MPI_Init, once all ranks have one setting: it holds where no info says anything else.
void start(const Setting& setting) noexcept;
// In MPI_Finalize. Ends the program if parts are held for other ranks, which may wait for ever.
void end() noexcept;

// The info keys imbrex_partial and imbrex_partial_parts of a call that gives a communicator an
// info. look_at_info() says, before MPI is called, whether they are valid: otherwise it has called
// the error handler of the call's communicator. The second function keeps them.
[[nodiscard]] int look_at_info(const Call& call, MPI_Info info);
[[nodiscard]] int keep_info(const Call& call, MPI_Comm comm, MPI_Info info);

// One side of a collective, from the arguments of its call. Pointers are valid during the call.
struct Side {
  const void* address = nullptr;
  MPI_Count count = 0;  // of each block, where `counts` is null
  MPI_Datatype type = MPI_DATATYPE_NULL;
  // For each rank or neighbour: the number of elements, as int or MPI_Count; the displacement, as
  // int or MPI_Aint; and the type, which makes displacements bytes. Null: all blocks are equal, one
  // after the other.
  const int* counts = nullptr;
  const MPI_Count* large_counts = nullptr;
  const int* places = nullptr;
  const MPI_Aint* large_places = nullptr;
  const MPI_Datatype* types = nullptr;

  void set(MPI_Datatype of_all) noexcept { type = of_all; }
  void set(const MPI_Datatype* of_each) noexcept { types = of_each; }
  [[nodiscard]] MPI_Count count_of(int rank) const noexcept {
    return counts != nullptr ? counts[rank] : large_counts != nullptr ? large_counts[rank] : count;
  }
  [[nodiscard]] MPI_Datatype type_of(int rank) const noexcept {
    return types != nullptr ? types[rank] : type;
  }
};

struct CollectiveCall {
  Kind kind = Kind::alltoall;
  // The name ends in v or w: blocks need not have one size. (The counts do not tell: a rank that is
  // no root may give null for unused arguments.)
  bool varies = false;
  Side send;
  Side receive;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  Setting setting;  // of the communicator, once the call has been accepted
};

// Whether all ranks decide for it.
[[nodiscard]] bool accepts(CollectiveCall& it);
// Carries out an accepted call and returns its result. Suspends.
[[nodiscard]] int run(const Call& call, const CollectiveCall& it);
// Begins an accepted call; std::nullopt if the communicator was not prepared.
[[nodiscard]] std::optional<int> begin_request(const Call& call, const CollectiveCall& it,
                                               MPI_Request* request);
// Prepares a communicator for the forms I, which may not wait for other ranks. Collective;
// suspends.
[[nodiscard]] int prepare(const Call& call, MPI_Comm comm);
// The number of calls that have gone block by block.
[[nodiscard]] std::uint64_t decomposed_calls() noexcept;

// The base name of a call, blocking or not, with int or with large counts.
[[nodiscard]] consteval std::string_view plain(std::string_view name) {
  if (name.ends_with("_c")) name.remove_suffix(2);
  if (name.starts_with('I')) name.remove_prefix(1);
  return name;
}
[[nodiscard]] consteval bool varies(std::string_view name) {
  return plain(name).ends_with('v') || plain(name).ends_with('w');
}
// `there`: a collective of this name can go block by block.
struct MaybeKind {
  bool there = false;
  Kind kind = Kind::alltoall;
};
[[nodiscard]] consteval MaybeKind kind_of(std::string_view name) {
  name = plain(name);
  if (varies(name)) name.remove_suffix(1);
  // After an I the name begins with a small letter.
  if (name == "Alltoall" || name == "alltoall") return {true, Kind::alltoall};
  if (name == "Allgather" || name == "allgather") return {true, Kind::allgather};
  if (name == "Gather" || name == "gather") return {true, Kind::gather};
  if (name == "Scatter" || name == "scatter") return {true, Kind::scatter};
  if (name == "Neighbor_alltoall" || name == "neighbor_alltoall") {
    return {true, Kind::neighbor_alltoall};
  }
  if (name == "Neighbor_allgather" || name == "neighbor_allgather") {
    return {true, Kind::neighbor_allgather};
  }
  return {};
}

// ---- from arguments ----------------------------------------------------------------------------

// Each takes its part from the front of a call's arguments, and hands on the rest: the sides, a
// root if there is one, and the communicator.
inline void read_end(CollectiveCall& it, MPI_Comm comm) { it.comm = comm; }
inline void read_end(CollectiveCall& it, int root, MPI_Comm comm) {
  it.root = root;
  it.comm = comm;
}

template <class Next, class... Rest>
void read_side(Side& side, Next next, const void* address, MPI_Count count, MPI_Datatype type,
               Rest... rest) {
  side = {.address = address, .count = count, .type = type};
  next(rest...);
}
template <class Next, class Types, class... Rest>
void read_side(Side& side, Next next, const void* address, const int* counts, const int* places,
               Types types, Rest... rest) {
  side = {.address = address, .counts = counts, .places = places};
  side.set(types);
  next(rest...);
}
template <class Next, class Types, class... Rest>
void read_side(Side& side, Next next, const void* address, const int* counts,
               const MPI_Aint* places, Types types, Rest... rest) {
  side = {.address = address, .counts = counts, .large_places = places};
  side.set(types);
  next(rest...);
}
template <class Next, class Types, class... Rest>
void read_side(Side& side, Next next, const void* address, const MPI_Count* counts,
               const MPI_Aint* places, Types types, Rest... rest) {
  side = {.address = address, .large_counts = counts, .large_places = places};
  side.set(types);
  next(rest...);
}

template <class... Arguments>
[[nodiscard]] CollectiveCall read(Arguments... arguments) {
  CollectiveCall it;
  const auto read_receive = [&it](auto... rest) {
    read_side(it.receive, [&it](auto... end) { read_end(it, end...); }, rest...);
  };
  read_side(it.send, read_receive, arguments...);
  return it;
}

// The call's result, if it has gone block by block; with a `request`, if it has begun.
template <MaybeKind kind, bool varies, class... Arguments>
[[nodiscard]] std::optional<int> attempt([[maybe_unused]] const Call& call,
                                         [[maybe_unused]] MPI_Request* const request,
                                         [[maybe_unused]] Arguments... arguments) {
  if constexpr (kind.there) {
    if (switches.goes_by_blocks.load(std::memory_order_relaxed)) [[unlikely]] {
      CollectiveCall it = read(arguments...);
      it.kind = kind.kind;
      it.varies = varies;
      if (!accepts(it)) return std::nullopt;
      return request != nullptr ? begin_request(call, it, request) : run(call, it);
    }
  }
  return std::nullopt;
}

}  // namespace imbrex::mpi::blocks
