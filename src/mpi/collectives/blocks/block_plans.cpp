// SPDX-License-Identifier: BSD-3-Clause
// The collectives of imbrex/collective.hpp: the parts of each.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "mpi/collectives/blocks/block_plans.hpp"
#include "mpi/collectives/blocks/partial_collective.hpp"
#include "mpi/collectives/order/order.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"

namespace imbrex {

namespace {

using detail::CollectiveState;
using mpi::blocks::Kind;
using mpi::blocks::Neighbors;
using mpi::blocks::Place;

// The block of `rank`, or of the neighbour with that index; its displacement in bytes. `strides`:
// there is one block for each rank.
template <class Address>
Piece block_of(const char* const call, const Blocks<Address>& blocks, const int rank,
               const bool strides) {
  const auto at = static_cast<std::size_t>(rank);
  const auto require = [&](const auto& array, const char* const what) {
    if (array.size() > at) return;
    throw Error(fmt::format("imbrex: {}: {} {} are given, but block {} needs one, too", call,
                            array.size(), what, rank));
  };
  MPI_Datatype type = blocks.type;
  if (!blocks.types.empty()) {
    require(blocks.types, "types");
    type = blocks.types[at];
  }
  int count = blocks.count;
  MPI_Aint displacement = strides ? static_cast<MPI_Aint>(rank) * count : 0;
  if (!blocks.counts.empty()) {
    require(blocks.counts, "counts");
    require(blocks.displacements, "displacements");
    count = blocks.counts[at];
    displacement = blocks.displacements[at];
  }
  if (count == 0) return {};
  if (type == MPI_DATATYPE_NULL) {
    throw Error(fmt::format("imbrex: {}: block {} has the type MPI_DATATYPE_NULL: give an MPI "
                            "datatype", call, rank));
  }
  if (!blocks.types.empty()) return {displacement, count, type};
  MPI_Aint least = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &least, &extent);
  return {displacement * extent, count, type};
}

// Part `number` of `parts` of a block.
Piece cut(const Piece& block, const int number, const int parts) {
  if (block.count <= 0) return block;
  const auto bound = [&](const int of) {
    return static_cast<std::ptrdiff_t>(block.count) * of / parts;
  };
  MPI_Aint least = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(block.type, &least, &extent);
  const std::ptrdiff_t first = bound(number);
  return {block.displacement + first * extent, static_cast<int>(bound(number + 1) - first),
          block.type};
}

std::unique_ptr<CollectiveState> make(const char* const call, const Kind kind, const int root,
                                      MPI_Comm comm, const CollectiveOptions& options,
                                      const bool of_neighbors) {
  if (!mpi::in_service()) {
    throw Error(fmt::format("imbrex: {} called outside MPI_Init and MPI_Finalize: call MPI_Init "
                            "first", call));
  }
  int between_groups = 0;
  if (comm != MPI_COMM_NULL) PMPI_Comm_test_inter(comm, &between_groups);
  if (comm == MPI_COMM_NULL || between_groups != 0) {
    throw Error(fmt::format("imbrex: {} is given {}: it needs a communicator of one group", call,
                            between_groups != 0 ? "an intercommunicator" : "MPI_COMM_NULL"));
  }
  std::shared_ptr<Place> place = mpi::blocks::place_of(call, comm);
  std::unique_ptr<const Neighbors> neighbors;
  if (of_neighbors) {
    neighbors = std::make_unique<const Neighbors>(mpi::blocks::neighbors_of(call, comm));
  }
  // Tags tell parts of several edges between two ranks apart.
  const int most = place->tags.parts_max() / (of_neighbors ? neighbors->most_edges() : 1);
  if (options.parts < 1 || options.parts > most) {
    throw Error(fmt::format("imbrex: {}: each block has {} parts: valid here: 1 to {}", call,
                            options.parts, most));
  }
  if (root < 0 || root >= place->size) {
    throw Error(fmt::format("imbrex: {}: root {} is not a rank of the communicator, which has {} "
                            "ranks", call, root,
                            place->size));
  }
  const char* const name = options.name != nullptr ? options.name : call;
  return std::make_unique<CollectiveState>(name, std::move(place), kind, root, options,
                                           std::move(neighbors));
}

// Plans all parts of one block.
void plan(CollectiveState& state, const bool comes, const int rank, const void* const address,
          const Piece& block, const std::function<Piece(int, int)>& pieces) {
  for (int part = 0; part < state.parts; ++part) {
    state.plan(comes, rank, part, address,
               pieces ? pieces(rank, part) : cut(block, part, state.parts));
  }
}

// The data from this rank to itself: block `goes` to send is block `comes` to receive.
void pair_own(CollectiveState& state, const int goes, const int comes) {
  for (int part = 0; part < state.parts; ++part) {
    CollectiveState::Part* const from = state.outgoing[state.index(false, goes, part)].get();
    CollectiveState::Part* const to = state.incoming[state.index(true, comes, part)].get();
    if ((from == nullptr) != (to == nullptr)) {
      throw Error(fmt::format("imbrex: {}: part {} from this rank to itself has elements on one "
                              "side only: give both sides the same number",
                              state.call, part));
    }
    if (from != nullptr) from->partner = to;
  }
}
void pair_own(CollectiveState& state) { pair_own(state, state.place->rank, state.place->rank); }

// Both blocks of each edge from this rank to itself.
void pair_own_edges(CollectiveState& state) {
  const Neighbors& all = *state.neighbors;
  const auto own = [&](const mpi::blocks::Neighbor& it) { return it.rank == state.place->rank; };
  if (std::ranges::count_if(all.sources, own) != std::ranges::count_if(all.destinations, own)) {
    throw Error(fmt::format("imbrex: {}: this rank is its own neighbour, and not as often a source "
                            "as a destination: correct the graph",
                            state.call));
  }
  for (std::size_t goes = 0; goes < all.destinations.size(); ++goes) {
    const auto& it = all.destinations[goes];
    if (!own(it)) continue;
    const auto comes = std::ranges::find_if(
        all.sources, [&](const auto& other) { return own(other) && other.edge == it.edge; });
    pair_own(state, static_cast<int>(goes), static_cast<int>(comes - all.sources.begin()));
  }
}

// The arguments that must be equal on all ranks, for IMBREX_CHECK.
mpi::check::Alike alike_of(const CollectiveState& state) {
  const Kind kind = state.kind;
  mpi::check::Alike alike;
  if (kind == Kind::gather || kind == Kind::scatter || kind == Kind::broadcast) {
    alike.root = state.root;
  }
  if (kind == Kind::allreduce) alike.op = mpi::check::name_of(state.op);
  return alike;
}

// All arguments are right, so all ranks come here.
Collective start(std::unique_ptr<CollectiveState> state) {
  Place& place = *state->place;
  const char* const call = state->call;
  const auto require = [call](const int code) {
    if (code != MPI_SUCCESS) throw mpi::make_error(call, code, detail::describe_current_task());
  };
  const mpi::Call of_all{
      .name = call, .comm = place.program, .kind = mpi::Kind::collective, .throws = true};
  mpi::check::Compared compared(place.program);
  mpi::order::Turn turn(of_all);
  require(turn.code());
  if (compared.is_wanted()) {
    compared.begin(of_all, state->task, alike_of(*state), turn.ordering());
    state->compared = std::move(compared);
  }
  state->instance = place.begin(*state);
  try {
    place.make(call);
  } catch (...) {
    place.end(state->instance, false);
    throw;
  }
  CollectiveState& it = *state.release();
  Collective handle = collective_of(&it);
  it.start();
  require(turn.end());
  return handle;
}

// Plans the blocks of all neighbours, and begins.
Collective start_with_neighbors(const char* const call, const Kind kind, const SendBlocks& send,
                                const ReceiveBlocks& receive, MPI_Comm comm,
                                const CollectiveOptions& options) {
  const bool one_block = kind == Kind::neighbor_allgather;  // one block goes to all
  if (send.address == MPI_IN_PLACE || receive.address == MPI_IN_PLACE) {
    throw Error(fmt::format("imbrex: {} is given MPI_IN_PLACE, but MPI does not allow it in "
                            "neighbourhood collectives: use two buffers",
                            call));
  }
  auto state = make(call, kind, 0, comm, options, true);
  for (int block = 0; block < state->block_count(true); ++block) {
    if (state->peer_of(true, block) == MPI_PROC_NULL) continue;
    plan(*state, true, block, receive.address,
         options.incoming ? Piece() : block_of(call, receive, block, true), options.incoming);
  }
  for (int block = 0; block < state->block_count(false); ++block) {
    if (state->peer_of(false, block) == MPI_PROC_NULL) continue;
    plan(*state, false, block, send.address,
         options.outgoing ? Piece() : block_of(call, send, one_block ? 0 : block, !one_block),
         options.outgoing);
  }
  pair_own_edges(*state);
  return start(std::move(state));
}

template <class Address>
bool is_in_place(const Blocks<Address>& blocks) {
  return blocks.address == MPI_IN_PLACE;
}

// Plans the blocks between all ranks, or between the root and all, and begins.
Collective start_between_ranks(const char* const call, const Kind kind, const SendBlocks& send,
                               const ReceiveBlocks& receive, const int root, MPI_Comm comm,
                               const CollectiveOptions& options) {
  if (kind == Kind::alltoall && (is_in_place(send) || is_in_place(receive))) {
    throw Error("imbrex: alltoall() is given MPI_IN_PLACE, but parts that arrive would overwrite "
                "parts that have not left: use two buffers, or MPI_Alltoall");
  }
  auto state = make(call, kind, root, comm, options, false);
  const int me = state->place->rank;
  const bool is_root = me == root;
  const bool gathers = kind == Kind::gather;
  const bool scatters = kind == Kind::scatter;
  // The own block of the root, or of each rank, then does not move.
  const bool in_place = scatters ? is_root && is_in_place(receive)
                                 : (is_root || !gathers) && is_in_place(send);
  const bool sends_received = in_place && kind == Kind::allgather;
  const bool one_for_each = kind == Kind::alltoall || scatters;  // otherwise one block goes to all
  for (int rank = 0; rank < state->place->size; ++rank) {
    if (rank == me && in_place) continue;
    if (gathers ? is_root : !scatters || rank == root) {
      plan(*state, true, rank, receive.address,
           options.incoming ? Piece() : block_of(call, receive, scatters ? 0 : rank, !scatters),
           options.incoming);
    }
    if (scatters ? is_root : !gathers || rank == root) {
      const Piece block = options.outgoing ? Piece()
                          : sends_received ? block_of(call, receive, me, true)
                                           : block_of(call, send, one_for_each ? rank : 0,
                                                      one_for_each);
      plan(*state, false, rank, sends_received ? receive.address : send.address, block,
           options.outgoing);
    }
  }
  if (is_root || !(gathers || scatters)) pair_own(*state);
  return start(std::move(state));
}

}  // namespace

Collective mpi::blocks::begin(const Kind kind, const SendBlocks& send,
                              const ReceiveBlocks& receive, const int root, MPI_Comm comm,
                              const CollectiveOptions& options) {
  const auto between_ranks = [&](const char* const call) {
    return start_between_ranks(call, kind, send, receive, root, comm, options);
  };
  const auto with_neighbors = [&](const char* const call) {
    return start_with_neighbors(call, kind, send, receive, comm, options);
  };
  switch (kind) {
    case Kind::alltoall: return between_ranks("imbrex::alltoall");
    case Kind::allgather: return between_ranks("imbrex::allgather");
    case Kind::gather: return between_ranks("imbrex::gather");
    case Kind::scatter: return between_ranks("imbrex::scatter");
    case Kind::neighbor_alltoall: return with_neighbors("imbrex::neighbor_alltoall");
    case Kind::neighbor_allgather: return with_neighbors("imbrex::neighbor_allgather");
    case Kind::broadcast:
    case Kind::allreduce: break;
  }
  throw Error("imbrex: a kind of collective that does not begin like this");
}

int most_parts(MPI_Comm comm) { return mpi::blocks::layout_of(comm).parts_max(); }

Collective alltoall(const SendBlocks& send, const ReceiveBlocks& receive, MPI_Comm comm,
                    const CollectiveOptions& options) {
  return mpi::blocks::begin(Kind::alltoall, send, receive, 0, comm, options);
}

Collective allgather(const SendBlocks& send, const ReceiveBlocks& receive, MPI_Comm comm,
                     const CollectiveOptions& options) {
  return mpi::blocks::begin(Kind::allgather, send, receive, 0, comm, options);
}

Collective gather(const SendBlocks& send, const ReceiveBlocks& receive, const int root,
                  MPI_Comm comm, const CollectiveOptions& options) {
  return mpi::blocks::begin(Kind::gather, send, receive, root, comm, options);
}

Collective scatter(const SendBlocks& send, const ReceiveBlocks& receive, const int root,
                   MPI_Comm comm, const CollectiveOptions& options) {
  return mpi::blocks::begin(Kind::scatter, send, receive, root, comm, options);
}

Collective broadcast(const ReceiveBlocks& data, const int root, MPI_Comm comm,
                     const CollectiveOptions& options) {
  constexpr const char* call = "imbrex::broadcast";
  auto state = make(call, Kind::broadcast, root, comm, options, false);
  const int me = state->place->rank;
  const int size = state->place->size;
  const int next = (me + 1) % size;
  const auto& pieces = me == root ? options.outgoing : options.incoming;
  const Piece block = pieces ? Piece() : block_of(call, data, 0, false);
  if (me != root) plan(*state, true, (me + size - 1) % size, data.address, block, pieces);
  if (next != root) plan(*state, false, next, data.address, block, pieces);
  for (int part = 0; me != root && next != root && part < state->parts; ++part) {
    auto& comes = state->incoming[state->index(true, (me + size - 1) % size, part)];
    if (comes != nullptr) {
      comes->partner = state->outgoing[state->index(false, next, part)].get();
    }
  }
  return start(std::move(state));
}

Collective allreduce(const SendBlocks& send, const ReceiveBlocks& receive, MPI_Op op,
                     MPI_Comm comm, const CollectiveOptions& options) {
  constexpr const char* call = "imbrex::allreduce";
  auto state = make(call, Kind::allreduce, 0, comm, options, false);
  if (options.hold) {
    throw Error("imbrex: allreduce() does not take .hold: all ranks must begin its parts in one "
                "order");
  }
  if (!is_in_place(send) && (send.count != receive.count || send.type != receive.type)) {
    throw Error(fmt::format("imbrex: allreduce() sends {} elements and receives {}, or two types: "
                            "give both sides the same number and type",
                            send.count, receive.count));
  }
  plan(*state, true, state->place->rank, receive.address,
       options.incoming ? Piece() : block_of(call, receive, 0, false), options.incoming);
  state->reduced = send.address;
  state->op = op;
  return start(std::move(state));
}

Collective neighbor_alltoall(const SendBlocks& send, const ReceiveBlocks& receive, MPI_Comm comm,
                             const CollectiveOptions& options) {
  return mpi::blocks::begin(Kind::neighbor_alltoall, send, receive, 0, comm, options);
}

Collective neighbor_allgather(const SendBlocks& send, const ReceiveBlocks& receive, MPI_Comm comm,
                              const CollectiveOptions& options) {
  return mpi::blocks::begin(Kind::neighbor_allgather, send, receive, 0, comm, options);
}

}  // namespace imbrex
