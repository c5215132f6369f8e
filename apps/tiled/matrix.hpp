// SPDX-License-Identifier: BSD-3-Clause
// A matrix, or the lower triangle of a symmetric one, in tiles dealt block-cyclically over a grid
// of ranks. Knows nothing of tasks; of MPI only the numbers of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "layout.hpp"

namespace tiled {

struct FreeMemory {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
using Doubles = std::unique_ptr<double[], FreeMemory>;
[[nodiscard]] Doubles allocate_doubles(std::size_t count);  // aligned to 64 bytes; throws bad_alloc

// The tiles of one rank, each column-major and contiguous, with its number of rows as stride.
// Thread safety: none; the tasks that use a tile are ordered by their accesses to its handle.
class TiledMatrix {
 public:
  TiledMatrix(const Layout& layout, int rank);  // contents undefined; throws std::bad_alloc

  // Returns how many bytes the constructor will allocate.
  [[nodiscard]] static std::size_t bytes(const Layout& layout, int rank) noexcept;

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] bool is_mine(int i, int j) const noexcept { return layout_.owner(i, j) == rank_; }
  // REQUIRES: is_mine(i, j). The reference itself stays valid and names the tile in dependencies.
  [[nodiscard]] double*& handle(int i, int j) noexcept {
    return handles_[static_cast<std::size_t>(layout_.position(i, j))];
  }
  [[nodiscard]] const double* tile(int i, int j) const noexcept {
    return handles_[static_cast<std::size_t>(layout_.position(i, j))];
  }

 private:
  Layout layout_;
  int rank_;
  Doubles memory_;
  std::vector<double*> handles_;  // of all tiles; null where not mine
};

}  // namespace tiled
