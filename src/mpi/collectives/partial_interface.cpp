// SPDX-License-Identifier: BSD-3-Clause
// imbrex/mpi.h: partial collectives, the functions of imbrex/collective.hpp without exceptions.
#include "imbrex/collective.hpp"

#include <memory>

#include "c/guard.hpp"
#include "imbrex/mpi.h"
#include "imbrex/mpi.hpp"
#include "mpi/collectives/blocks/blocks.hpp"
#include "mpi/collectives/blocks/neighbors.hpp"
#include "mpi/engine/guard_mpi.hpp"
#include "mpi/engine/lifetime.hpp"

struct imbrex_collective_s {
  imbrex::Collective collective;
};

namespace imbrex::mpi {

namespace {

// Converts the arguments of a C caller, with `size` blocks, for the functions of C++.
template <class Blocks, class Given>
Blocks sized(const Given& it, const std::size_t size) {
  const auto span_of = [size](const auto* const array) {
    return std::span(array, array == nullptr ? 0 : size);
  };
  return {.address = it.address,
          .count = it.count,
          .type = it.type,
          .counts = span_of(it.counts),
          .displacements = span_of(it.displacements),
          .types = span_of(it.types)};
}

template <class Blocks, class Given>
Blocks blocks_of(const Given& it, MPI_Comm comm) {
  int size = 0;
  if (it.counts != nullptr || it.displacements != nullptr || it.types != nullptr) {
    if (comm != MPI_COMM_NULL) PMPI_Comm_size(comm, &size);
  }
  return sized<Blocks>(it, static_cast<std::size_t>(size));
}

// The function of C++ reports a communicator without neighbours.
blocks::Neighbors neighbors(const char* const call, MPI_Comm comm) {
  int between_groups = 0;
  if (!in_service() || comm == MPI_COMM_NULL) return {};
  PMPI_Comm_test_inter(comm, &between_groups);
  return between_groups != 0 ? blocks::Neighbors() : blocks::neighbors_of(call, comm);
}

CollectiveOptions options_of(const imbrex_collective_options* const it) {
  CollectiveOptions options;
  if (it == nullptr) return options;
  const auto by = [it](imbrex_piece (*const function)(void*, int, int)) {
    return [function, argument = it->argument](const int rank, const int part) -> Piece {
      const imbrex_piece piece = function(argument, rank, part);
      return {piece.displacement, piece.count, piece.type};
    };
  };
  if (it->parts != 0) options.parts = it->parts;
  options.hold = it->hold != 0;
  if (it->outgoing != nullptr) options.outgoing = by(it->outgoing);
  if (it->incoming != nullptr) options.incoming = by(it->incoming);
  return options;
}

// `begin()` makes the collective.
template <class F>
int make(imbrex_collective_t* const collective, F begin) noexcept {
  return guard_mpi([&] {
    c::require(collective, "the place for the collective");
    auto handle = std::make_unique<imbrex_collective_s>();
    handle->collective = begin();
    *collective = handle.release();
  });
}

const imbrex_send_blocks& given(const imbrex_send_blocks* const it) {
  c::require(it, "the blocks to send");
  return *it;
}
const imbrex_receive_blocks& given(const imbrex_receive_blocks* const it) {
  c::require(it, "the blocks to receive");
  return *it;
}

// `ask(collective)` returns a future.
template <class F>
int give(imbrex_collective_t it, imbrex_future_t* const future, F ask) noexcept {
  return guard_mpi([&] {
    c::require(it, "the collective");
    c::require(future, "the place for the future");
    auto handle = std::make_unique<imbrex_future_s>(nullptr, nullptr, 0);
    handle->future = ask(it->collective);
    *future = handle.release();
  });
}

}  // namespace

}  // namespace imbrex::mpi

using imbrex::ReceiveBlocks;
using imbrex::SendBlocks;
using imbrex::mpi::blocks_of;
using imbrex::mpi::given;
using imbrex::mpi::give;
using imbrex::mpi::make;
using imbrex::mpi::options_of;

#pragma GCC visibility push(default)
extern "C" {

int imbrex_alltoall(const imbrex_send_blocks* const send,
                    const imbrex_receive_blocks* const receive, MPI_Comm comm,
                    const imbrex_collective_options* const options,
                    imbrex_collective_t* const collective) {
  return make(collective, [&] {
    return imbrex::alltoall(blocks_of<SendBlocks>(given(send), comm),
                            blocks_of<ReceiveBlocks>(given(receive), comm), comm,
                            options_of(options));
  });
}

int imbrex_allgather(const imbrex_send_blocks* const send,
                     const imbrex_receive_blocks* const receive, MPI_Comm comm,
                     const imbrex_collective_options* const options,
                     imbrex_collective_t* const collective) {
  return make(collective, [&] {
    return imbrex::allgather(blocks_of<SendBlocks>(given(send), comm),
                             blocks_of<ReceiveBlocks>(given(receive), comm), comm,
                             options_of(options));
  });
}

int imbrex_gather(const imbrex_send_blocks* const send, const imbrex_receive_blocks* const receive,
                  const int root, MPI_Comm comm, const imbrex_collective_options* const options,
                  imbrex_collective_t* const collective) {
  return make(collective, [&] {
    return imbrex::gather(blocks_of<SendBlocks>(given(send), comm),
                          blocks_of<ReceiveBlocks>(given(receive), comm), root, comm,
                          options_of(options));
  });
}

int imbrex_scatter(const imbrex_send_blocks* const send, const imbrex_receive_blocks* const receive,
                   const int root, MPI_Comm comm, const imbrex_collective_options* const options,
                   imbrex_collective_t* const collective) {
  return make(collective, [&] {
    return imbrex::scatter(blocks_of<SendBlocks>(given(send), comm),
                           blocks_of<ReceiveBlocks>(given(receive), comm), root, comm,
                           options_of(options));
  });
}

int imbrex_broadcast(const imbrex_receive_blocks* const data, const int root, MPI_Comm comm,
                     const imbrex_collective_options* const options,
                     imbrex_collective_t* const collective) {
  return make(collective, [&] {
    return imbrex::broadcast(blocks_of<ReceiveBlocks>(given(data), comm), root, comm,
                             options_of(options));
  });
}

int imbrex_allreduce(const imbrex_send_blocks* const send,
                     const imbrex_receive_blocks* const receive, MPI_Op op, MPI_Comm comm,
                     const imbrex_collective_options* const options,
                     imbrex_collective_t* const collective) {
  return make(collective, [&] {
    return imbrex::allreduce(blocks_of<SendBlocks>(given(send), comm),
                             blocks_of<ReceiveBlocks>(given(receive), comm), op, comm,
                             options_of(options));
  });
}

int imbrex_neighbor_alltoall(const imbrex_send_blocks* const send,
                             const imbrex_receive_blocks* const receive, MPI_Comm comm,
                             const imbrex_collective_options* const options,
                             imbrex_collective_t* const collective) {
  return make(collective, [&] {
    const auto all = imbrex::mpi::neighbors("imbrex_neighbor_alltoall", comm);
    return imbrex::neighbor_alltoall(
        imbrex::mpi::sized<SendBlocks>(given(send), all.destinations.size()),
        imbrex::mpi::sized<ReceiveBlocks>(given(receive), all.sources.size()), comm,
        options_of(options));
  });
}

int imbrex_neighbor_allgather(const imbrex_send_blocks* const send,
                              const imbrex_receive_blocks* const receive, MPI_Comm comm,
                              const imbrex_collective_options* const options,
                              imbrex_collective_t* const collective) {
  return make(collective, [&] {
    const auto all = imbrex::mpi::neighbors("imbrex_neighbor_allgather", comm);
    return imbrex::neighbor_allgather(
        imbrex::mpi::sized<SendBlocks>(given(send), 1),
        imbrex::mpi::sized<ReceiveBlocks>(given(receive), all.sources.size()), comm,
        options_of(options));
  });
}

int imbrex_collective_from(imbrex_collective_t it, const int rank, const int part,
                           imbrex_future_t* const future) {
  return give(it, future, [&](const imbrex::Collective& x) { return x.from(rank, part); });
}

int imbrex_collective_to(imbrex_collective_t it, const int rank, const int part,
                         imbrex_future_t* const future) {
  return give(it, future, [&](const imbrex::Collective& x) { return x.to(rank, part); });
}

int imbrex_collective_all(imbrex_collective_t it, imbrex_future_t* const future) {
  return give(it, future, [](const imbrex::Collective& x) { return x.all(); });
}

int imbrex_collective_send(imbrex_collective_t it, const int rank, const int part) {
  return imbrex::mpi::guard_mpi([&] {
    imbrex::c::require(it, "the collective given to imbrex_collective_send()");
    it->collective.send(rank, part);
  });
}

int imbrex_release_by_blocks(void) {
  return imbrex::mpi::guard_mpi([] { imbrex::release_by_blocks(); });
}

unsigned long long imbrex_decomposed_calls(void) {
  return imbrex::mpi::blocks::decomposed_calls();
}

void imbrex_collective_free(imbrex_collective_t* const it) {
  if (it == nullptr) return;
  delete *it;
  *it = nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
