// SPDX-License-Identifier: BSD-3-Clause
#include "replicated.hpp"

#include <imbrex/imbrex.hpp>

#include <algorithm>

namespace tiled {

MultiVector random_signs(std::int64_t n, int count) {
  MultiVector x(n, count);
  const RandomSource random(0, 20210901, 0);
  for (int c = 0; c < count; ++c) {
    for (std::int64_t i = 0; i < n; ++i) {
      x.column(c)[i] = random.entry(i, -c - 1) < 0 ? -1.0 : 1.0;
    }
  }
  return x;
}

void fill(TiledMatrix& matrix, const Source& source) {
  const Layout& layout = matrix.layout();
  imbrex::finish([&] {
    for_each_tile_of_mine(matrix, [&](int i, int j) {
      imbrex::task("fill").launch([&matrix, &source, &layout, i, j] {
        double* const tile = matrix.handle(i, j);
        source.fill(block_of(layout, i, j), tile);
        if (i != j || layout.shape == Shape::full) return;
        const std::ptrdiff_t rows = layout.extent(i);
        for (std::ptrdiff_t c = 1; c < rows; ++c) std::fill_n(tile + c * rows, c, 0.0);
      });
    });
  });
}

Block block_of(const Layout& layout, int i, int j) noexcept {
  return {layout.first(i), layout.first(j), layout.extent(i), layout.extent(j)};
}

ConstTile tile_of(const TiledMatrix& matrix, int i, int j) noexcept {
  return {matrix.tile(i, j), matrix.layout().extent(i), matrix.layout().extent(j)};
}

Vectors rows_of(const Layout& layout, int i, MultiVector& x) noexcept {
  return {x.entries.data() + layout.first(i), x.count, x.n};
}

void sum_over_ranks(const Team& team, MultiVector& x) {
  MPI_Allreduce(MPI_IN_PLACE, x.entries.data(), static_cast<int>(x.entries.size()), MPI_DOUBLE,
                MPI_SUM, team.all());
}

double sum_over_ranks(const Team& team, double mine) {
  double sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, team.all());
  return sum;
}

}  // namespace tiled
