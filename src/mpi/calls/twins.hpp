// SPDX-License-Identifier: BSD-3-Clause
// Which collectives become non-blocking twins: all, so that tasks on some ranks match other code on
// other ranks. In a job whose ranks have only attached imbrex, blocking collectives stay those of
// the MPI: they may take place together with processes without imbrex, which twins do not match.
//
// Twins of Open MPI (quirks.hpp) that match each other differently than blocking calls do. Used by
// interpose.cpp.
//
// Whether two ranks exchange a message in MPI_Alltoallv and MPI_Alltoallw depends on the bytes. The
// twins decide by the number of elements, and wait for ever where one side has none and the other
// has elements of no bytes. Elements of no bytes therefore become no elements, on both sides.
//
// In a grid of one or two ranks along a periodic dimension one neighbour is on both sides. The
// twins of MPI_Neighbor_alltoall and its variants v and w then exchange the data of the two sides.
// There the calls have no twin.
#pragma once

#include <mpi.h>

#include <type_traits>
#include <vector>

#include "mpi/abi/inquiries.hpp"
#include "mpi/abi/quirks.hpp"

namespace imbrex::mpi {

// All ranks of MPI_COMM_WORLD have one value. MPI_Init or imbrex_attach() writes it, before the
// program calls a collective.
inline constinit bool collectives_have_twins = true;

// The counts that a twin gets instead of the program's; they live until it is complete.
template <class Count>
class NoBytes {
 public:
  // All blocks have one type.
  [[nodiscard]] const Count* counts(const void* buffer, const Count counts[], MPI_Datatype type,
                                    MPI_Comm comm) {
    if (buffer == MPI_IN_PLACE || !is_empty(type)) return counts;
    std::vector<Count>& zeros = next();
    zeros.resize(peers_in(comm));
    return zeros.data();
  }
  // Each block has its own type.
  [[nodiscard]] const Count* counts(const void* buffer, const Count counts[],
                                    const MPI_Datatype types[], MPI_Comm comm) {
    if (buffer == MPI_IN_PLACE) return counts;
    const std::size_t peers = peers_in(comm);
    std::vector<Count>* changed = nullptr;
    for (std::size_t peer = 0; peer < peers; ++peer) {
      if (counts[peer] == 0 || !is_empty(types[peer])) continue;
      if (changed == nullptr) {
        changed = &next();
        changed->assign(counts, counts + peers);
      }
      (*changed)[peer] = 0;
    }
    return changed != nullptr ? changed->data() : counts;
  }

 private:
  [[nodiscard]] static bool is_empty(MPI_Datatype type) noexcept {
    return bytes_of(type) == 0;
  }
  [[nodiscard]] static std::size_t peers_in(MPI_Comm comm) noexcept {
    if (comm == MPI_COMM_NULL) return 0;
    int inter = 0;
    int ranks = 0;
    PMPI_Comm_test_inter(comm, &inter);
    inter != 0 ? PMPI_Comm_remote_size(comm, &ranks) : PMPI_Comm_size(comm, &ranks);
    return static_cast<std::size_t>(ranks);
  }
  [[nodiscard]] std::vector<Count>& next() noexcept { return sides_[used_++]; }

  std::vector<Count> sides_[2];  // for the given and the received blocks, if changed
  int used_ = 0;
};

template <auto One, auto Other>
inline constexpr bool same_function =
    std::is_same_v<std::integral_constant<decltype(One), One>,
                   std::integral_constant<decltype(Other), Other>>;

// The `Twin` of a collective with these arguments; `rest` is the communicator and the request.
template <auto Twin, class Count, class Types>
int start_exchange(NoBytes<Count>& kept, const void* from, const Count* from_counts,
                   const auto* from_places, Types from_types, void* to, const Count* to_counts,
                   const auto* to_places, Types to_types, MPI_Comm comm, MPI_Request* request) {
  return Twin(from, kept.counts(from, from_counts, from_types, comm), from_places, from_types, to,
              kept.counts(nullptr, to_counts, to_types, comm), to_places, to_types, comm, request);
}

// Whether the blocking call on `comm` must not become `Twin`: the same on all of its ranks.
template <auto Twin>
[[nodiscard]] bool mixes_up_sides(MPI_Comm comm) {
  if constexpr (same_function<Twin, &PMPI_Ineighbor_alltoall> ||
                same_function<Twin, &PMPI_Ineighbor_alltoallv> ||
                same_function<Twin, &PMPI_Ineighbor_alltoallw>) {
    if (!has<Quirk::twins_mix_up_sides>()) return false;
    int topology = MPI_UNDEFINED;
    if (comm == MPI_COMM_NULL || PMPI_Topo_test(comm, &topology) != MPI_SUCCESS ||
        topology != MPI_CART) {
      return false;
    }
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    const auto count = static_cast<std::size_t>(dimensions);
    std::vector<int> ranks(count);
    std::vector<int> periodic(count);
    std::vector<int> place(count);
    PMPI_Cart_get(comm, dimensions, ranks.data(), periodic.data(), place.data());
    for (std::size_t i = 0; i < count; ++i) {
      if (periodic[i] != 0 && ranks[i] <= 2) return true;
    }
  }
  static_cast<void>(comm);
  return false;
}

template <auto Twin, class Count, class... Arguments>
int start_twin(NoBytes<Count>& kept, Arguments... arguments) {
  if constexpr (same_function<Twin, &PMPI_Ialltoallv> || same_function<Twin, &PMPI_Ialltoallw>) {
    if (has<Quirk::twins_compare_counts>()) return start_exchange<Twin>(kept, arguments...);
  }
  static_cast<void>(kept);
  return Twin(arguments...);
}

}  // namespace imbrex::mpi
