// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "factor.hpp"

namespace lu {
namespace {

// One triangle of a diagonal tile of the factor, with zeros elsewhere.
std::vector<double> triangle(ConstTile a, bool lower) {
  const auto rows = static_cast<std::size_t>(a.rows);
  std::vector<double> entries(rows * rows, 0.0);
  for (std::size_t c = 0; c < rows; ++c) {
    for (std::size_t r = 0; r < rows; ++r) {
      if (r == c && lower) entries[c * rows + r] = 1;
      if (lower ? r > c : r <= c) entries[c * rows + r] = a.data[c * rows + r];
    }
  }
  return entries;
}

// y += factor T x, where T is L or U.
void add_triangle(const Team& team, const TiledMatrix& matrix, bool lower, double factor,
                  MultiVector& x, MultiVector& y) {
  const Layout& layout = matrix.layout();
  MultiVector part(x.n, x.count);
  for_each_tile_of_mine(matrix, [&](int i, int j) {
    if (i != j && (i > j) != lower) return;
    ConstTile a = tile_of(matrix, i, j);
    const std::vector<double> half = i == j ? triangle(a, lower) : std::vector<double>();
    if (i == j) a.data = half.data();
    add_product(factor, a, rows_of(layout, j, x), rows_of(layout, i, part));
  });
  sum_over_ranks(team, part);
  for (std::size_t e = 0; e < y.entries.size(); ++e) y.entries[e] += part.entries[e];
}

}  // namespace

double residual(const Team& team, const TiledMatrix& factor, const Source& source, int probes) {
  const Layout& layout = factor.layout();
  MultiVector x = random_signs(layout.n, probes);
  MultiVector y(layout.n, probes);  // A x, of this rank's tiles
  std::vector<double> entries(static_cast<std::size_t>(layout.tile) * layout.tile);
  double squares = 0;
  for_each_tile_of_mine(factor, [&](int i, int j) {
    const Block block = block_of(layout, i, j);
    source.fill(block, entries.data());
    const ConstTile a{entries.data(), block.rows, block.columns};
    add_product(1.0, a, rows_of(layout, j, x), rows_of(layout, i, y));
    for (int e = 0; e < a.rows * a.columns; ++e) squares += a.data[e] * a.data[e];
  });
  sum_over_ranks(team, y);
  squares = sum_over_ranks(team, squares);
  MultiVector z(layout.n, probes);  // U x
  add_triangle(team, factor, false, 1.0, x, z);
  add_triangle(team, factor, true, -1.0, z, y);
  double rest = 0;
  for (const double entry : y.entries) rest += entry * entry;
  return std::sqrt(rest / probes / squares) / (static_cast<double>(layout.n) * 0x1p-53);
}

}  // namespace lu
