// SPDX-License-Identifier: BSD-3-Clause
// Properties of types and communicators, and types that outlive the program's handle. Knows no
// operation. Thread safety: any thread.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

namespace imbrex::mpi {

// The size of one element, also of 2 GiB or more; below 0 where MPI returns none, as for
// MPI_DATATYPE_NULL.
[[nodiscard]] inline std::int64_t bytes_of(const MPI_Datatype type) noexcept {
  MPI_Count bytes = -1;
  if (type == MPI_DATATYPE_NULL) return -1;
#if MPI_VERSION >= 4
  if (PMPI_Type_size_c(type, &bytes) != MPI_SUCCESS) return -1;
#else
  if (PMPI_Type_size_x(type, &bytes) != MPI_SUCCESS) return -1;
#endif
  return bytes;
}

// The size of `count` elements; below 0 also for a count below 0. At most the largest number.
[[nodiscard]] inline std::int64_t bytes_of(const MPI_Count count,
                                           const MPI_Datatype type) noexcept {
  const std::int64_t each = bytes_of(type);
  if (count < 0 || each < 0) return -1;
  std::int64_t all = 0;
  if (__builtin_mul_overflow(each, count, &all)) return std::numeric_limits<std::int64_t>::max();
  return all;
}

// Whether `info` says "true" for the key.
[[nodiscard]] inline bool asserts(MPI_Info info, const char* const key) noexcept {
  char value[8] = "";
  int found = 0;
  PMPI_Info_get(info, key, sizeof value - 1, value, &found);
  return found != 0 && std::strcmp(value, "true") == 0;
}

// The numbers of neighbours that send to this rank, and that receive from it.
struct Degrees {
  int in = 0;
  int out = 0;
};
// Empty: `comm` has no topology.
[[nodiscard]] inline std::optional<Degrees> degrees_of(const MPI_Comm comm) noexcept {
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &topology);
  Degrees degrees;
  if (topology == MPI_CART) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    degrees = {2 * dimensions, 2 * dimensions};
  } else if (topology == MPI_GRAPH) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &degrees.in);
    degrees.out = degrees.in;
  } else if (topology == MPI_DIST_GRAPH) {
    int weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &degrees.in, &degrees.out, &weighted);
  } else {
    return std::nullopt;
  }
  return degrees;
}

// A type for the same data as `type`, to be freed by the caller. MPI_Type_dup would also copy its
// attributes, which calls functions of the program in a call where it does not expect them.
[[nodiscard]] inline MPI_Datatype copy_of(MPI_Datatype type) noexcept {
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  PMPI_Type_contiguous(1, type, &copy);
  PMPI_Type_commit(&copy);
  return copy;
}

}  // namespace imbrex::mpi
