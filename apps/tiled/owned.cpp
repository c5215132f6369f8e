// SPDX-License-Identifier: BSD-3-Clause
#include "owned.hpp"

#include <exception>

namespace tiled {

OwnedTiles::OwnedTiles(imbrex::Space& space, TiledMatrix& matrix)
    : layout_(matrix.layout()),
      data_(static_cast<std::size_t>(layout_.position(layout_.tiles(), 0))) {
  const int tiles = layout_.tiles();
  for (int i = 0; i < tiles; ++i) {
    const int columns = layout_.shape == Shape::lower ? i + 1 : tiles;
    for (int j = 0; j < columns; ++j) {
      data_[static_cast<std::size_t>(layout_.position(i, j))] = space.matrix<double>(
          layout_.owner(i, j), static_cast<std::size_t>(layout_.extent(i)),
          static_cast<std::size_t>(layout_.extent(j)), matrix.handle(i, j));
    }
  }
}

std::int64_t finish_inserted(const Team& team, imbrex::Space& space, const std::int64_t& minor) {
  std::exception_ptr error;
  try {
    space.finish();
  } catch (...) {  // on every rank, if a task has thrown on any
    error = std::current_exception();
  }
  const std::int64_t mine = minor;
  std::int64_t largest = 0;
  MPI_Allreduce(&mine, &largest, 1, MPI_INT64_T, MPI_MAX, team.all());
  if (largest == 0 && error) std::rethrow_exception(error);
  return largest;
}

TaskUse use_of(const imbrex::Space& space, const Layout& layout) {
  const imbrex::SpaceCounters counters = space.counters();
  const auto count = [](const std::uint64_t value) { return static_cast<std::int64_t>(value); };
  const auto tile = static_cast<std::size_t>(layout.tile);
  const std::size_t tile_bytes = tile * tile * sizeof(double);
  return {.tiles_peak = (counters.copies_bytes_peak + tile_bytes - 1) / tile_bytes,
          .bytes_sent = count(counters.bytes_sent),
          .bytes_received = count(counters.bytes_received),
          .broadcasts = {.versions = count(counters.versions_sent),
                         .to_several = count(counters.broadcasts),
                         .full = count(counters.broadcasts_full),
                         .root_copies = count(counters.copies_from_root),
                         .relay_copies = count(counters.copies_from_relay)}};
}

}  // namespace tiled
