// SPDX-License-Identifier: BSD-3-Clause
// One all-to-all exchange of the outputs of maps: buffers, sizes and pieces. The variants decide
// which thread moves the bytes, and when.
#pragma once

#include <mpi.h>

#include <memory>
#include <span>
#include <vector>

#include "program.hpp"

namespace mapreduce {

// The way in which MPI is called: by the program's names, which imbrex serves, or past it.
struct Calls {
  decltype(&MPI_Alltoall) alltoall = &MPI_Alltoall;
  decltype(&MPI_Alltoallv) alltoallv = &MPI_Alltoallv;
};

// Returns empty outputs for `maps` maps.
[[nodiscard]] std::vector<Output> outputs_for(MPI_Comm comm, int maps);

// The tuples that all ranks send to all others after some maps. Each map's share for a rank is a
// piece, which stays whole.
// Thread safety: any number of tasks may call the const functions.
class Exchange {
 public:
  // Takes the outputs over, of which all ranks have the same number, and exchanges the sizes.
  // Collective. Suspends. Throws std::runtime_error if this rank's share exceeds 2 GiB - 1:
  // then the others wait.
  Exchange(MPI_Comm comm, std::span<Output> outputs, const Calls& calls);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // The arguments of MPI_Alltoallv, in bytes; by rank.
  struct Side {
    std::unique_ptr<std::byte[]> bytes;
    std::vector<int> counts;
    std::vector<int> starts;
  };
  [[nodiscard]] const Side& sent() const noexcept { return sent_; }
  [[nodiscard]] Side& received() noexcept { return received_; }
  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(sent_.counts.size()); }

  // The plain way of the exchange: blocks until all is here. Collective. Suspends.
  void run(const Calls& calls);

  // Calls visit(std::span<const std::byte>) for each piece from `source` that is not empty.
  template <class Visit>
  void for_each_piece(int source, Visit&& visit) const {
    const auto s = static_cast<std::size_t>(source);
    const std::byte* at = received_.bytes.get() + received_.starts[s];
    for (std::size_t k = s * maps_; k < (s + 1) * maps_; ++k) {
      const auto size = static_cast<std::size_t>(pieces_[k]);
      if (size != 0) visit(std::span(at, size));
      at += size;
    }
  }

 private:
  MPI_Comm comm_;
  std::size_t maps_;
  Side sent_;
  Side received_;
  std::vector<int> pieces_;  // bytes: what arrives of each rank's maps, rank by rank
};

}  // namespace mapreduce
