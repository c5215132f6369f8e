// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.hpp"

#include <fmt/format.h>

#include <climits>
#include <stdexcept>

namespace mapreduce {
namespace {

// Counts and starts of `side`, from the sizes of its pieces, `maps` for each rank; allocates.
void lay_out(Exchange::Side& side, const std::vector<int>& pieces, const std::size_t ranks,
             const std::size_t maps, const char* const verb) {
  std::size_t total = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::size_t count = 0;
    for (std::size_t map = 0; map < maps; ++map) {
      count += static_cast<std::size_t>(pieces[rank * maps + map]);
    }
    if (total + count > INT_MAX) {
      throw std::runtime_error(fmt::format(
          "one exchange of tuples {} more than 2 GiB here, which MPI cannot count; take more "
          "ranks, a smaller input, or --variant partial, which exchanges chunk by chunk", verb));
    }
    side.counts.push_back(static_cast<int>(count));
    side.starts.push_back(static_cast<int>(total));
    total += count;
  }
  side.bytes = std::make_unique_for_overwrite<std::byte[]>(total);
}

}  // namespace

std::vector<Output> outputs_for(MPI_Comm comm, const int maps) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  return std::vector<Output>(static_cast<std::size_t>(maps),
                             Output(static_cast<std::size_t>(ranks)));
}

Exchange::Exchange(MPI_Comm comm, const std::span<Output> outputs, const Calls& calls)
    : comm_(comm), maps_(outputs.size()) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<int> sizes(ranks * maps_);
  for (std::size_t map = 0; map < maps_; ++map) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::size_t bytes = outputs[map][rank].size();
      if (bytes > INT_MAX) {
        throw std::runtime_error(fmt::format(
            "a chunk makes {} bytes of tuples for one rank, more than MPI can count; take more "
            "--chunks", bytes));
      }
      sizes[rank * maps_ + map] = static_cast<int>(bytes);
    }
  }
  lay_out(sent_, sizes, ranks, maps_, "sends");
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::byte* to = sent_.bytes.get() + sent_.starts[rank];
    for (Output& output : outputs) {
      Bytes& bytes = output[rank];
      if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
      to += bytes.size();
      Bytes().swap(bytes);
    }
  }
  pieces_.resize(sizes.size());
  const int count = static_cast<int>(maps_);
  calls.alltoall(sizes.data(), count, MPI_INT, pieces_.data(), count, MPI_INT, comm);
  lay_out(received_, pieces_, ranks, maps_, "receives");
}

void Exchange::run(const Calls& calls) {
  calls.alltoallv(sent_.bytes.get(), sent_.counts.data(), sent_.starts.data(), MPI_BYTE,
                  received_.bytes.get(), received_.counts.data(), received_.starts.data(), MPI_BYTE,
                  comm_);
}

}  // namespace mapreduce
