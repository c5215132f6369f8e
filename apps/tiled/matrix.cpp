// SPDX-License-Identifier: BSD-3-Clause
#include "matrix.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace tiled {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

// Tiles begin on cache lines, so that no two tasks write to one.
std::size_t padded(std::size_t count) noexcept { return (count + 7) / 8 * 8; }

// Calls visit(i, j) for each tile that `rank` owns, column by column.
template <class Visit>
void for_each_tile(const Layout& layout, int rank, Visit&& visit) {
  const int tiles = layout.tiles();
  const auto [rows, columns] = layout.grid;
  for (int j = rank % columns; j < tiles; j += columns) {
    const int row = rank / columns;
    const bool lower = layout.shape == Shape::lower;
    const int first = lower ? j + (row - j % rows + rows) % rows : row;
    for (int i = first; i < tiles; i += rows) visit(i, j);
  }
}

std::size_t doubles_of(const Layout& layout, int rank) noexcept {
  std::size_t count = 0;
  for_each_tile(layout, rank, [&](int i, int j) {
    count += padded(static_cast<std::size_t>(layout.extent(i)) * layout.extent(j));
  });
  return count;
}

}  // namespace

Doubles allocate_doubles(std::size_t count) {
  const std::size_t alignment = count * sizeof(double) < huge_page ? 64 : huge_page;
  const std::size_t bytes = std::max<std::size_t>(count * sizeof(double), 1);
  void* const memory =
      std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return Doubles(static_cast<double*>(memory));
}

TiledMatrix::TiledMatrix(const Layout& layout, int rank)
    : layout_(layout),
      rank_(rank),
      memory_(allocate_doubles(doubles_of(layout, rank))),
      handles_(static_cast<std::size_t>(layout.position(layout.tiles(), 0)), nullptr) {
  // A hint: with small pages address translation costs the kernels some percent of their rate.
  // Only here: the faults of huge pages are slow, and these are taken before anything is timed.
  const std::size_t bytes = doubles_of(layout, rank) * sizeof(double);
  if (bytes >= huge_page) (void)madvise(memory_.get(), bytes, MADV_HUGEPAGE);
  double* next = memory_.get();
  for_each_tile(layout, rank, [&](int i, int j) {
    handle(i, j) = next;
    next += padded(static_cast<std::size_t>(layout_.extent(i)) * layout_.extent(j));
  });
}

std::size_t TiledMatrix::bytes(const Layout& layout, int rank) noexcept {
  const auto handles = static_cast<std::size_t>(layout.position(layout.tiles(), 0));
  return doubles_of(layout, rank) * sizeof(double) + handles * sizeof(double*);
}

}  // namespace tiled
