// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/blocks/neighbors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>

#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi::blocks {

namespace {

void succeed(const char* call, const int code) {
  if (code != MPI_SUCCESS) throw make_error(call, code, detail::describe_current_task());
}

// Counts edges in the order of `all`, or with `by_pairs` in the order 1, 0, 3, 2 and so on.
void number(std::vector<Neighbor>& all, const bool by_pairs) {
  std::map<int, int> edges;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Neighbor& it = all[by_pairs ? i ^ 1U : i];
    if (it.rank != MPI_PROC_NULL) it.edge = edges[it.rank]++;
  }
}

std::vector<Neighbor> listed(const std::vector<int>& ranks, const int count) {
  std::vector<Neighbor> all;
  for (int i = 0; i < count; ++i) all.push_back({.rank = ranks[static_cast<std::size_t>(i)]});
  return all;
}

// At least one, so that MPI gets an address.
std::vector<int> room(const int count) {
  return std::vector<int>(static_cast<std::size_t>(std::max(count, 1)));
}

// In each dimension first the neighbour below, then the one above. Data for the one below arrive
// there as data from the one above, also if both are one rank, as MPI requires.
Neighbors in_grid(const char* const call, MPI_Comm comm) {
  Neighbors neighbors;
  int dimensions = 0;
  succeed(call, PMPI_Cartdim_get(comm, &dimensions));
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    int below = MPI_PROC_NULL;
    int above = MPI_PROC_NULL;
    succeed(call, PMPI_Cart_shift(comm, dimension, 1, &below, &above));
    neighbors.destinations.push_back({.rank = below});
    neighbors.destinations.push_back({.rank = above});
  }
  neighbors.sources = neighbors.destinations;
  number(neighbors.destinations, false);
  number(neighbors.sources, true);
  return neighbors;
}

Neighbors in_graph(const char* const call, MPI_Comm comm) {
  int rank = 0;
  int count = 0;
  succeed(call, PMPI_Comm_rank(comm, &rank));
  succeed(call, PMPI_Graph_neighbors_count(comm, rank, &count));
  std::vector<int> ranks = room(count);
  succeed(call, PMPI_Graph_neighbors(comm, rank, count, ranks.data()));
  Neighbors neighbors{.sources = listed(ranks, count), .destinations = {}};
  number(neighbors.sources, false);
  neighbors.destinations = neighbors.sources;
  return neighbors;
}

Neighbors in_distributed_graph(const char* const call, MPI_Comm comm) {
  int in = 0;
  int out = 0;
  int weighted = 0;
  succeed(call, PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
  std::vector<int> sources = room(in);
  std::vector<int> destinations = room(out);
  std::vector<int> weights_in = sources;
  std::vector<int> weights_out = destinations;
  succeed(call, PMPI_Dist_graph_neighbors(
                    comm, in, sources.data(), weighted != 0 ? weights_in.data() : MPI_UNWEIGHTED,
                    out, destinations.data(), weighted != 0 ? weights_out.data() : MPI_UNWEIGHTED));
  Neighbors neighbors{.sources = listed(sources, in), .destinations = listed(destinations, out)};
  number(neighbors.sources, false);
  number(neighbors.destinations, false);
  return neighbors;
}

}  // namespace

int Neighbors::most_edges() const noexcept {
  int most = 1;
  for (const Neighbor& it : sources) most = std::max(most, it.edge + 1);
  for (const Neighbor& it : destinations) most = std::max(most, it.edge + 1);
  return most;
}

Neighbors neighbors_of(const char* const call, MPI_Comm comm) {
  int topology = MPI_UNDEFINED;
  succeed(call, PMPI_Topo_test(comm, &topology));
  if (topology == MPI_CART) return in_grid(call, comm);
  if (topology == MPI_GRAPH) return in_graph(call, comm);
  if (topology == MPI_DIST_GRAPH) return in_distributed_graph(call, comm);
  throw Error(fmt::format("imbrex: {} is given a communicator without a topology: make one by "
                          "MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create",
                          call));
}

}  // namespace imbrex::mpi::blocks
