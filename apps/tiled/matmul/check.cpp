// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <utility>

#include "multiply.hpp"

namespace matmul {
namespace {

double sum_of_squares(const std::vector<double>& entries) {
  double sum = 0;
  for (const double entry : entries) sum += entry * entry;
  return sum;
}

struct Squares {
  double difference, product;  // the latter of the norms of what is multiplied
};

// The squares for one tile of C.
Squares compare(const TiledMatrix& c, int i, int j, const Source& a, const Source& b) {
  const Layout& layout = c.layout();
  const int n = static_cast<int>(layout.n);
  const int rows = layout.extent(i);
  const int columns = layout.extent(j);
  std::vector<double> of_a(static_cast<std::size_t>(rows) * n);
  std::vector<double> of_b(static_cast<std::size_t>(n) * columns);
  std::vector<double> expected(static_cast<std::size_t>(rows) * columns, 0.0);
  a.fill({layout.first(i), 0, rows, n}, of_a.data());
  b.fill({0, layout.first(j), n, columns}, of_b.data());
  add_product({of_a.data(), rows, n}, {of_b.data(), n, columns}, {expected.data(), rows, columns});
  double difference = 0;
  for (std::size_t e = 0; e < expected.size(); ++e) {
    const double d = c.tile(i, j)[e] - expected[e];
    difference += d * d;
  }
  return {difference, sum_of_squares(of_a) * sum_of_squares(of_b)};
}

}  // namespace

double error(const Team& team, const TiledMatrix& c, const Source& a, const Source& b, int tiles) {
  std::vector<std::pair<int, int>> mine;
  for_each_tile_of_mine(c, [&](int i, int j) { mine.emplace_back(i, j); });
  const auto count = std::min(mine.size(), static_cast<std::size_t>(tiles));
  Squares sum{0, 0};
  for (std::size_t t = 0; t < count; ++t) {  // spread over all, the last one among them
    const auto [i, j] = mine[(t + 1) * mine.size() / count - 1];
    const Squares squares = compare(c, i, j, a, b);
    sum = {sum.difference + squares.difference, sum.product + squares.product};
  }
  sum = {sum_over_ranks(team, sum.difference), sum_over_ranks(team, sum.product)};
  if (sum.product == 0) return 0;
  return std::sqrt(sum.difference / sum.product) / (static_cast<double>(c.layout().n) * 0x1p-53);
}

KernelTimes measure_kernels(const int tile) {
  const auto rows = static_cast<std::size_t>(tile);
  const std::vector<double> other(rows * rows, 1e-3);
  std::vector<double> result(rows * rows, 0.0);
  const ConstTile a{other.data(), tile, tile};
  return {least_time([] {}, [&] { add_product(a, a, {result.data(), tile, tile}); })};
}

}  // namespace matmul
