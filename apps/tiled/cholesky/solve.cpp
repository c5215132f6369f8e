// SPDX-License-Identifier: BSD-3-Clause
#include "solve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>


namespace cholesky {
namespace {

// Adds A x to y, this rank's tiles only. Returns the sum of squares of their entries in A.
double add_source_product(const TiledMatrix& shape, const Source& source, MultiVector& x,
                          MultiVector& y) {
  const Layout& layout = shape.layout();
  std::vector<double> entries(static_cast<std::size_t>(layout.tile) * layout.tile);
  double squares = 0;
  for_each_tile_of_mine(shape, [&](int i, int j) {
    source.fill(block_of(layout, i, j), entries.data());
    const ConstTile a{entries.data(), layout.extent(i), layout.extent(j)};
    add_product(1.0, a, rows_of(layout, j, x), rows_of(layout, i, y));
    if (i != j) add_transposed(1.0, a, rows_of(layout, i, x), rows_of(layout, j, y));
    double sum = 0;
    for (int e = 0; e < a.rows * a.columns; ++e) sum += a.data[e] * a.data[e];
    squares += i == j ? sum : 2 * sum;
  });
  return squares;
}

struct Norms {
  double a_squared;  // ||A||^2
  double r_squared;  // the sum of ||(A - L L^T) x||^2 over the vectors
};

Norms apply_residual(const Team& team, const TiledMatrix& factor, const Source& source,
                     MultiVector& x) {
  const Layout& layout = factor.layout();
  MultiVector z(x.n, x.count);  // L^T x
  for_each_tile_of_mine(factor, [&](int i, int j) {
    add_transposed(1.0, tile_of(factor, i, j), rows_of(layout, i, x), rows_of(layout, j, z));
  });
  sum_over_ranks(team, z);
  MultiVector y(x.n, x.count);  // A x - L z
  const double squares = add_source_product(factor, source, x, y);
  for_each_tile_of_mine(factor, [&](int i, int j) {
    add_product(-1.0, tile_of(factor, i, j), rows_of(layout, j, z), rows_of(layout, i, y));
  });
  sum_over_ranks(team, y);
  double r_squared = 0;
  for (const double entry : y.entries) r_squared += entry * entry;
  return {sum_over_ranks(team, squares), r_squared};
}

}  // namespace

Residual residual(const Team& team, const TiledMatrix& factor, const Source& source,
                  const ResidualOptions& options) {
  const std::int64_t n = factor.layout().n;
  const bool exact = n <= options.exact_limit;
  const int width = exact ? static_cast<int>(std::min<std::int64_t>(n, 64)) : options.probes;
  Norms total{0, 0};
  if (exact) {
    for (std::int64_t first = 0; first < n; first += width) {
      MultiVector x(n, static_cast<int>(std::min<std::int64_t>(width, n - first)));
      for (int c = 0; c < x.count; ++c) x.column(c)[first + c] = 1.0;
      const Norms part = apply_residual(team, factor, source, x);
      total = {part.a_squared, total.r_squared + part.r_squared};
    }
  } else {
    MultiVector x = random_signs(n, width);
    total = apply_residual(team, factor, source, x);
    total.r_squared /= width;
  }
  const double norms = std::sqrt(total.r_squared) / std::sqrt(total.a_squared);
  return {norms / (static_cast<double>(n) * 0x1p-53),
          exact ? "Frobenius, exact"
                : fmt::format("Frobenius, numerator estimated from {} random vectors", width)};
}

double log_determinant(const Team& team, const TiledMatrix& factor) {
  double mine = 0;
  for (int k = 0; k < factor.layout().tiles(); ++k) {
    if (!factor.is_mine(k, k)) continue;
    const std::ptrdiff_t rows = factor.layout().extent(k);
    for (std::ptrdiff_t d = 0; d < rows; ++d) mine += std::log(factor.tile(k, k)[d * rows + d]);
  }
  return 2.0 * sum_over_ranks(team, mine);
}

// Right-looking: `pending` collects, on each rank, what its tiles subtract from later rows. In each
// step the rank of the diagonal tile gets the sum, solves, and broadcasts.
void solve_forward(const Team& team, const TiledMatrix& factor, MultiVector& b) {
  const Layout& layout = factor.layout();
  MultiVector pending(b.n, b.count);
  for (int k = 0; k < layout.tiles(); ++k) {
    const int rows = layout.extent(k);
    const int owner = layout.owner(k, k);
    MultiVector part(rows, b.count);
    MultiVector sum(rows, b.count);
    for (int c = 0; c < b.count; ++c) {
      std::copy_n(pending.column(c) + layout.first(k), rows, part.column(c));
    }
    MPI_Reduce(part.entries.data(), sum.entries.data(), rows * b.count, MPI_DOUBLE, MPI_SUM, owner,
               team.all());
    if (team.rank() == owner) {
      for (int c = 0; c < b.count; ++c) {
        for (int r = 0; r < rows; ++r) sum.column(c)[r] += b.column(c)[layout.first(k) + r];
      }
      solve_lower(tile_of(factor, k, k), {sum.entries.data(), sum.count, sum.n});
    }
    MPI_Bcast(sum.entries.data(), rows * b.count, MPI_DOUBLE, owner, team.all());
    for (int c = 0; c < b.count; ++c) {
      std::copy_n(sum.column(c), rows, b.column(c) + layout.first(k));
    }
    for (int i = k + 1; i < layout.tiles(); ++i) {
      if (!factor.is_mine(i, k)) continue;
      add_product(-1.0, tile_of(factor, i, k), {sum.entries.data(), sum.count, sum.n},
                  rows_of(layout, i, pending));
    }
  }
}

}  // namespace cholesky
