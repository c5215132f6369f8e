// SPDX-License-Identifier: BSD-3-Clause
// The variants in which reductions begin before the exchange has ended.
#include <fmt/format.h>
#include <imbrex/collective.hpp>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <algorithm>
#include <climits>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "exchange.hpp"
#include "variants.hpp"

namespace mapreduce {
namespace {

// Calls visit(rank) for the others; each rank begins with another one, so that none is overrun.
template <class Visit>
void for_each_other(MPI_Comm comm, Visit&& visit) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (int k = 1; k < ranks; ++k) visit((rank + k) % ranks);
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

// Begins an exchange, and has each piece reduced when its rank's block is here. Collective.
void begin(Program& program, Exchange& exchange) {
  const Exchange::Side& from = exchange.sent();
  Exchange::Side& to = exchange.received();
  const auto moves = imbrex::alltoall(
      {.address = from.bytes.get(), .type = MPI_BYTE, .counts = from.counts,
       .displacements = from.starts},
      {.address = to.bytes.get(), .type = MPI_BYTE, .counts = to.counts,
       .displacements = to.starts},
      exchange.comm());
  for (int source = 0; source < exchange.ranks(); ++source) {
    exchange.for_each_piece(source, [&](const std::span<const std::byte> piece) {
      imbrex::task("reduce").in(moves.from(source)).launch([&program, piece] {
        program.reduce(piece);
      });
    });
  }
  imbrex::finish_owns(moves.all());
}

}  // namespace

void run_blocks(Program& program, const Shape& shape, Times&) {
  std::vector<Output> outputs = map_all(program, shape);
  Exchange exchange(shape.comm, outputs, {});
  imbrex::finish([&] { begin(program, exchange); });
}

void run_partial_receive(Program& program, const Shape& shape, Times&) {
  std::vector<Output> outputs = map_all(program, shape);
  Exchange exchange(shape.comm, outputs, {});
  Exchange::Side& to = exchange.received();
  imbrex::finish([&] {
    auto task = imbrex::task("exchange");
    for (std::size_t source = 0; source < to.counts.size(); ++source) {
      static_cast<void>(task.out(imbrex::range(to.bytes.get() + to.starts[source],
                                               static_cast<std::size_t>(to.counts[source]))));
    }
    task.launch([&] {
      imbrex::release_by_blocks();
      exchange.run({});
    });
    for (int source = 0; source < exchange.ranks(); ++source) {
      exchange.for_each_piece(source, [&](const std::span<const std::byte> piece) {
        imbrex::task("reduce").in(imbrex::range(piece)).launch([&program, piece] {
          program.reduce(piece);
        });
      });
    }
  });
}

namespace {

// A piece that is on its way here.
struct Arriving {
  std::unique_ptr<std::byte[]> bytes;
  imbrex::Future<MPI_Status> here;
};

// Posted before the maps begin, so that no worker is needed for a piece to arrive. The length of a
// piece is not known, so there is room for the longest, which takes memory only where bytes arrive.
std::vector<Arriving> post_receives(const Program& program, const Shape& shape) {
  const std::size_t bytes_max = std::min<std::size_t>(program.piece_bytes_max(), INT_MAX);
  std::vector<Arriving> arriving;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    for_each_other(shape.comm, [&](const int source) {
      auto bytes = std::make_unique_for_overwrite<std::byte[]>(bytes_max);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Irecv(bytes.get(), static_cast<int>(bytes_max), MPI_BYTE, source, chunk, shape.comm,
                &request);
      arriving.push_back({std::move(bytes), imbrex::when(request)});
    });
  }
  return arriving;
}

// Runs what the other ranks wait for: if it fails, all ranks end.
template <class Body>
void or_abort(MPI_Comm comm, Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    fmt::print(stderr, "mapreduce: rank {}: {}\n", rank_in(comm), error.what());
    MPI_Abort(comm, 1);
  }
}

void send_all(const Output& output, const Shape& shape, const int chunk) {
  for_each_other(shape.comm, [&](const int target) {
    const Bytes& bytes = output[static_cast<std::size_t>(target)];
    if (bytes.size() > INT_MAX) {
      throw std::runtime_error(fmt::format("a chunk makes {} bytes of tuples for one rank, more "
                                           "than MPI can count; take more --chunks", bytes.size()));
    }
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, target, chunk, shape.comm,
              &request);
    imbrex::finish_owns(request);
  });
}

}  // namespace

void run_messages(Program& program, const Shape& shape, Times&) {
  const auto me = static_cast<std::size_t>(rank_in(shape.comm));
  std::vector<Output> outputs = outputs_for(shape.comm, shape.chunks);
  std::vector<Arriving> arriving = post_receives(program, shape);
  imbrex::finish([&] {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      imbrex::task("map").priority(1).launch([&, chunk] {  // first, so that the network has work
        Output& output = outputs[static_cast<std::size_t>(chunk)];
        or_abort(shape.comm, [&] {
          program.map({chunk, chunk + 1}, output);
          send_all(output, shape, chunk);
        });
        imbrex::task("reduce").launch([&] { program.reduce(output[me]); });
      });
    }
    // After all maps: none of these can be what the maps of another rank wait for.
    for (Arriving& piece : arriving) {
      imbrex::task("reduce").in(piece.here).launch([&] {
        int bytes = 0;
        MPI_Get_count(&piece.here.get(), MPI_BYTE, &bytes);
        program.reduce({piece.bytes.get(), static_cast<std::size_t>(bytes)});
        piece.bytes.reset();
      });
    }
  });
}

void run_partial(Program& program, const Shape& shape, Times&) {
  const auto chunks = static_cast<std::size_t>(shape.chunks);
  std::vector<Output> outputs = outputs_for(shape.comm, shape.chunks);
  std::vector<std::unique_ptr<Exchange>> exchanges(chunks);
  char order = 0;  // exchanges begin in the order of their chunks, on all ranks
  imbrex::finish([&] {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      imbrex::task("map").out(outputs[chunk]).priority(1).launch([&, chunk] {
        const int first = static_cast<int>(chunk);
        or_abort(shape.comm, [&] { program.map({first, first + 1}, outputs[chunk]); });
      });
      imbrex::task("exchange").in(outputs[chunk]).inout(order).priority(2).launch([&, chunk] {
        or_abort(shape.comm, [&] {
          exchanges[chunk] =
              std::make_unique<Exchange>(shape.comm, std::span(&outputs[chunk], 1), Calls{});
          begin(program, *exchanges[chunk]);
        });
      });
    }
  });
}

}  // namespace mapreduce
