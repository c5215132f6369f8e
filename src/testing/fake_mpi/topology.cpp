// SPDX-License-Identifier: BSD-3-Clause
// fake_mpi: topologies, Cartesian and of distributed graphs. The other ranks are said to make the
// same communicators; what neighbours a rank has is asked for this one alone.
#include <algorithm>

#include "simulation.hpp"

namespace imbrex::fake_mpi {

namespace {

// The communicator `handle`, if it has this topology; else null, and `code` is what to return.
Comm* find_with(Lock& lock, MPI_Comm handle, const int topology, int& code) {
  Comm* const comm = find_comm(lock, handle);
  if (comm != nullptr && comm->topology.kind == topology) return comm;
  code = raise(lock, comm, comm == nullptr ? MPI_ERR_COMM : MPI_ERR_ARG);
  return nullptr;
}

void copy(const std::vector<int>& from, const int room, int* const to) {
  std::copy_n(from.begin(), std::min(room, static_cast<int>(from.size())), to);
}

}  // namespace
}  // namespace imbrex::fake_mpi

using namespace imbrex::fake_mpi;

extern "C" {

int PMPI_Topo_test(MPI_Comm handle, int* topology) {
  Lock lock("Topo_test");
  const Comm* const comm = find_comm(lock, handle);
  if (comm == nullptr) return raise(lock, nullptr, MPI_ERR_COMM);
  *topology = comm->topology.kind;
  return MPI_SUCCESS;
}

// The last dimension is counted first.
int PMPI_Cart_create(MPI_Comm handle, int dimensions, const int sizes[], const int periods[], int,
                     MPI_Comm* made) {
  Lock lock("Cart_create");
  const Comm* const comm = find_comm(lock, handle);
  if (comm == nullptr) return raise(lock, nullptr, MPI_ERR_COMM);
  int ranks = 1;
  for (int i = 0; i < dimensions; ++i) ranks *= sizes[i];
  if (ranks > comm->size) return raise(lock, nullptr, MPI_ERR_ARG);
  Comm& grid = make_like(lock, *comm, ranks);
  grid.topology = {.kind = MPI_CART,
                   .sizes = {sizes, sizes + dimensions},
                   .periods = {periods, periods + dimensions},
                   .sources = {},
                   .destinations = {}};
  *made = grid.handle;
  return MPI_SUCCESS;
}

int PMPI_Cartdim_get(MPI_Comm handle, int* dimensions) {
  Lock lock("Cartdim_get");
  int code = MPI_SUCCESS;
  const Comm* const comm = find_with(lock, handle, MPI_CART, code);
  if (comm != nullptr) *dimensions = static_cast<int>(comm->topology.sizes.size());
  return code;
}

int PMPI_Cart_shift(MPI_Comm handle, int dimension, int by, int* from, int* to) {
  Lock lock("Cart_shift");
  int code = MPI_SUCCESS;
  const Comm* const comm = find_with(lock, handle, MPI_CART, code);
  if (comm == nullptr) return code;
  const auto at = static_cast<std::size_t>(dimension);
  const std::vector<int>& sizes = comm->topology.sizes;
  int step = 1;  // between the ranks of neighbours
  for (std::size_t i = at + 1; i < sizes.size(); ++i) step *= sizes[i];
  const int size = sizes[at];
  const int place = comm->rank / step % size;
  const auto neighbor = [&](const int where) {
    const int inside = (where % size + size) % size;
    if (inside != where && comm->topology.periods[at] == 0) return MPI_PROC_NULL;
    return comm->rank + (inside - place) * step;
  };
  *from = neighbor(place - by);
  *to = neighbor(place + by);
  return MPI_SUCCESS;
}

int PMPI_Dist_graph_create_adjacent(MPI_Comm handle, int in, const int sources[], const int*,
                                    int out, const int destinations[], const int*, MPI_Info, int,
                                    MPI_Comm* made) {
  Lock lock("Dist_graph_create_adjacent");
  const Comm* const comm = find_comm(lock, handle);
  if (comm == nullptr) return raise(lock, nullptr, MPI_ERR_COMM);
  Comm& graph = make_like(lock, *comm, comm->size);
  graph.topology = {.kind = MPI_DIST_GRAPH,
                    .sizes = {},
                    .periods = {},
                    .sources = {sources, sources + in},
                    .destinations = {destinations, destinations + out}};
  *made = graph.handle;
  return MPI_SUCCESS;
}

int PMPI_Dist_graph_neighbors_count(MPI_Comm handle, int* in, int* out, int* weighted) {
  Lock lock("Dist_graph_neighbors_count");
  int code = MPI_SUCCESS;
  const Comm* const comm = find_with(lock, handle, MPI_DIST_GRAPH, code);
  if (comm == nullptr) return code;
  *in = static_cast<int>(comm->topology.sources.size());
  *out = static_cast<int>(comm->topology.destinations.size());
  *weighted = 0;
  return MPI_SUCCESS;
}

int PMPI_Dist_graph_neighbors(MPI_Comm handle, int in, int sources[], int*, int out,
                              int destinations[], int*) {
  Lock lock("Dist_graph_neighbors");
  int code = MPI_SUCCESS;
  const Comm* const comm = find_with(lock, handle, MPI_DIST_GRAPH, code);
  if (comm == nullptr) return code;
  copy(comm->topology.sources, in, sources);
  copy(comm->topology.destinations, out, destinations);
  return MPI_SUCCESS;
}

}  // extern "C"
