// SPDX-License-Identifier: BSD-3-Clause
// The variant by objects of imbrex/collective.hpp: one all-to-all for each chunk, many under way.
#include <imbrex/collective.hpp>
#include <imbrex/imbrex.hpp>

#include <memory>
#include <span>
#include <vector>

#include "exchange.hpp"
#include "variants.hpp"

namespace mapreduce {
namespace {

// Begins the exchange of one chunk, and has each piece reduced when it is here. Collective.
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

void run_partial(Program& program, const Shape& shape, Times&) {
  int ranks = 0;
  MPI_Comm_size(shape.comm, &ranks);
  const auto chunks = static_cast<std::size_t>(shape.chunks);
  std::vector<Output> outputs(chunks, Output(static_cast<std::size_t>(ranks)));
  std::vector<std::unique_ptr<Exchange>> exchanges(chunks);
  char order = 0;  // exchanges begin in the order of their chunks, on all ranks
  imbrex::finish([&] {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      imbrex::task("map").out(outputs[chunk]).priority(1).launch([&, chunk] {
        const int first = static_cast<int>(chunk);
        program.map({first, first + 1}, outputs[chunk]);
      });
      imbrex::task("exchange").in(outputs[chunk]).inout(order).priority(2).launch([&, chunk] {
        exchanges[chunk] =
            std::make_unique<Exchange>(shape.comm, std::span(&outputs[chunk], 1), Calls{});
        begin(program, *exchanges[chunk]);
      });
    }
  });
}

}  // namespace mapreduce
