// SPDX-License-Identifier: BSD-3-Clause
// Tests of lu, run on 1, 2 and 4 ranks. Methodology: every rank runs the same tests in the same
// order; what is computed in tiles on every possible grid is compared with the textbook's loops
// over the whole matrix.
#include <gtest/gtest.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "../expect_near.hpp"
#include "factor.hpp"

namespace lu {
namespace {

int rank_count() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

std::vector<double> dense_factor(const Source& source, int n) {
  std::vector<double> a(static_cast<std::size_t>(n) * n);
  source.fill({0, 0, n, n}, a.data());
  for (int k = 0; k < n; ++k) {
    for (int i = k + 1; i < n; ++i) {
      a[k * n + i] /= a[k * n + k];
      for (int j = k + 1; j < n; ++j) a[j * n + i] -= a[k * n + i] * a[j * n + k];
    }
  }
  return a;
}

template <class Visit>
void on_every_grid(Visit&& visit) {
  for (int rows = 1; rows <= rank_count(); ++rows) {
    if (rank_count() % rows != 0) continue;
    const Team team({rows, rank_count() / rows});
    SCOPED_TRACE(testing::Message() << rows << " rows of ranks");
    visit(team);
  }
}

TEST(lu, finds_the_factors_of_the_textbook_on_every_grid_and_shape) {
  // One tile; tiles that fit; a last tile of 1, and of tile - 1; halves inside a kernel.
  constexpr std::tuple<int, int> shapes[] = {{1, 1}, {64, 16}, {65, 16}, {79, 16}, {150, 80}};
  on_every_grid([&](const Team& team) {
    for (const auto& [n, tile] : shapes) {
      const UnsymmetricSource source(n, 7);
      const std::vector<double> dense = dense_factor(source, n);
      for (const int lookahead : {1, 2, 100}) {
        SCOPED_TRACE(testing::Message() << "n " << n << " lookahead " << lookahead);
        TiledMatrix matrix({n, tile, team.grid(), Shape::full}, team.rank());
        fill(matrix, source);
        TaskUse use;
        const TaskOptions options{
            .lookahead = lookahead,
            .priorities = lookahead == 2 ? Priorities::sends : Priorities::none};
        ASSERT_EQ(factor(team, matrix, {}, options, use), 0);
        expect_near(matrix, dense, 1e-11, 1e-13);
        EXPECT_LT(residual(team, matrix, source, 16), 1);
        EXPECT_LE(use.tiles_peak, static_cast<std::size_t>(lookahead * 2 * ((n - 1) / tile + 1)));
      }
    }
  });
}

void expect_same_bits(const TiledMatrix& a, const TiledMatrix& b) {
  const Layout& layout = a.layout();
  for_each_tile_of_mine(a, [&](int i, int j) {
    const std::ptrdiff_t count = std::ptrdiff_t{layout.extent(i)} * layout.extent(j);
    ASSERT_TRUE(std::equal(a.tile(i, j), a.tile(i, j) + count, b.tile(i, j)))
        << "tile " << i << ", " << j;
  });
}

TEST(inserted_tasks, find_the_factors_of_those_with_messages_to_the_last_bit) {
  constexpr std::tuple<int, int> shapes[] = {{1, 1}, {65, 16}, {79, 16}, {150, 80}};
  on_every_grid([&](const Team& team) {
    for (const auto& [n, tile] : shapes) {
      const Layout layout{n, tile, team.grid(), Shape::full};
      const UnsymmetricSource source(n, 7);
      TiledMatrix expected(layout, team.rank());
      fill(expected, source);
      TaskUse use;
      ASSERT_EQ(factor(team, expected, {}, {}, use), 0);
      for (const bool trim : {false, true}) {
        SCOPED_TRACE(testing::Message() << "n " << n << " trim " << trim);
        TiledMatrix matrix(layout, team.rank());
        fill(matrix, source);
        ASSERT_EQ(factor_inserted(team, matrix, {}, {.trim = trim}, use), 0);
        expect_same_bits(matrix, expected);
        EXPECT_LT(residual(team, matrix, source, 16), 1);
      }
    }
  });
}

// The identity but for a zero on the diagonal.
class NearIdentity : public Source {
 public:
  explicit NearIdentity(std::int64_t zero) : zero_(zero) {}
  void fill(const Block& block, double* entries) const override {
    for (int c = 0; c < block.columns; ++c) {
      for (int r = 0; r < block.rows; ++r) {
        const bool one = block.row + r == block.column + c && block.row + r != zero_;
        *entries++ = one ? 1.0 : 0.0;
      }
    }
  }

 private:
  std::int64_t zero_;
};

TEST(lu, names_the_first_leading_minor_that_is_zero_on_all_ranks) {
  on_every_grid([](const Team& team) {
    for (const int minor : {1, 16, 17, 40, 79}) {
      TiledMatrix matrix({79, 16, team.grid(), Shape::full}, team.rank());
      fill(matrix, NearIdentity(minor - 1));
      TaskUse use;
      EXPECT_EQ(factor(team, matrix, {}, {}, use), minor);
      fill(matrix, NearIdentity(minor - 1));
      EXPECT_EQ(factor_inserted(team, matrix, {}, {.trim = minor % 2 == 0}, use), minor);
    }
  });
}

TEST(lu, residual_is_what_was_put_into_a_wrong_factor) {
  const Team team(nearly_square(rank_count()));
  const int n = 130;
  const UnsymmetricSource source(n, 5);
  TiledMatrix matrix({n, 32, team.grid(), Shape::full}, team.rank());
  fill(matrix, source);
  TaskUse use;
  ASSERT_EQ(factor(team, matrix, {}, {}, use), 0);
  // U + d e e^T at entry (3, 100): the product changes by d times column 3 of L.
  const double d = 1e-3;
  if (matrix.is_mine(0, 3)) matrix.handle(0, 3)[(100 - 96) * 32 + 3] += d;
  const std::vector<double> dense = dense_factor(source, n);
  double squares = d * d;
  for (int i = 4; i < n; ++i) squares += d * d * dense[3 * n + i] * dense[3 * n + i];
  double a_squares = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) a_squares += source.entry(i, j) * source.entry(i, j);
  }
  const double expected = std::sqrt(squares / a_squares) / (n * 0x1p-53);
  // One column of A - L U differs from zero: any sign of x gives the same.
  EXPECT_NEAR(residual(team, matrix, source, 8), expected, 1e-6 * expected);
  EXPECT_GT(expected, 10);
}

TEST(lu, with_timed_kernels_runs_the_whole_graph_and_changes_nothing) {
  const Team team(nearly_square(rank_count()));
  const Layout layout{100, 16, team.grid(), Shape::full};
  const UnsymmetricSource source(layout.n, 1);
  const KernelTimes measured = measure_kernels(layout.tile);
  for (const double time : measured) EXPECT_GT(time, 0);
  TiledMatrix matrix(layout, team.rank());
  fill(matrix, source);
  TaskUse use;
  ASSERT_EQ(factor(team, matrix, Kernels(measured, layout.tile), {}, use), 0);
  EXPECT_EQ(use.bytes_received == 0, rank_count() == 1);
  std::vector<double> dense(100 * 100);
  source.fill({0, 0, 100, 100}, dense.data());
  expect_near(matrix, dense, 1e-11, 1e-13);
}

}  // namespace
}  // namespace lu
