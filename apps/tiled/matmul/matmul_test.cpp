// SPDX-License-Identifier: BSD-3-Clause
// Tests of matmul, run on 1, 2 and 4 ranks. Methodology: every rank runs the same tests in the same
// order; what is computed in tiles on every possible grid is compared with one dgemm of the whole.
#include <cblas.h>
#include <gtest/gtest.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "../expect_near.hpp"
#include "multiply.hpp"

namespace matmul {
namespace {

int rank_count() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// A few entries that are not zero before: the product is added.
constexpr double before = 0.25;

Matrices make(const Team& team, const Layout& layout, const Source& a, const Source& b) {
  Matrices matrices{TiledMatrix(layout, team.rank()), TiledMatrix(layout, team.rank()),
                    TiledMatrix(layout, team.rank())};
  fill(matrices.a, a);
  fill(matrices.b, b);
  for_each_tile_of_mine(matrices.c, [&](int i, int j) {
    std::fill_n(matrices.c.handle(i, j), layout.extent(i) * layout.extent(j), before);
  });
  return matrices;
}

std::vector<double> dense_product(const Source& a, const Source& b, int n) {
  const auto count = static_cast<std::size_t>(n) * n;
  std::vector<double> of_a(count), of_b(count), c(count, before);
  a.fill({0, 0, n, n}, of_a.data());
  b.fill({0, 0, n, n}, of_b.data());
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, of_a.data(), n, of_b.data(),
              n, 1.0, c.data(), n);
  return c;
}

bool same_bits(const TiledMatrix& a, const TiledMatrix& b) {
  const Layout& layout = a.layout();
  bool same = true;
  for_each_tile_of_mine(a, [&](int i, int j) {
    const std::ptrdiff_t count = std::ptrdiff_t{layout.extent(i)} * layout.extent(j);
    same = same && std::equal(a.tile(i, j), a.tile(i, j) + count, b.tile(i, j));
  });
  return same;
}

template <class Visit>
void on_every_grid_and_shape(Visit&& visit) {
  // One tile; tiles that fit; a last tile of 1, and of tile - 1.
  constexpr std::tuple<int, int> shapes[] = {{1, 1}, {64, 16}, {65, 16}, {79, 16}};
  for (int rows = 1; rows <= rank_count(); ++rows) {
    if (rank_count() % rows != 0) continue;
    const Team team({rows, rank_count() / rows});
    for (const auto& [n, tile] : shapes) {
      SCOPED_TRACE(testing::Message() << rows << " rows of ranks, n " << n);
      visit(team, Layout{n, tile, team.grid(), Shape::full}, UniformSource(n, 1),
            UniformSource(n, 2));
    }
  }
}

TEST(messages_and_inserted_tasks, find_the_product_of_dgemm_and_each_others_bits) {
  on_every_grid_and_shape([](const Team& team, const Layout& layout, const Source& a,
                             const Source& b) {
    const std::vector<double> dense = dense_product(a, b, static_cast<int>(layout.n));
    Matrices expected = make(team, layout, a, b);
    TaskUse use;
    multiply_messages(team, expected, {}, {.lookahead = 2}, use);
    expect_near(expected.c, dense, 0, 1e-13);
    EXPECT_LE(use.tiles_peak, static_cast<std::size_t>(2 * 2 * layout.tiles()));
    for (const bool trim : {false, true}) {
      Matrices matrices = make(team, layout, a, b);
      multiply_inserted(team, matrices, {}, {.trim = trim}, use);
      EXPECT_TRUE(same_bits(matrices.c, expected.c)) << "trim " << trim;
    }
  });
}

TEST(slices, are_summed_to_the_product) {
  on_every_grid_and_shape([](const Team& team, const Layout& layout, const Source& a,
                             const Source& b) {
    const std::vector<double> dense = dense_product(a, b, static_cast<int>(layout.n));
    for (int slices = 2; slices <= team.size(); slices *= 2) {
      SCOPED_TRACE(testing::Message() << slices << " slices");
      Matrices matrices = make(team, layout, a, b);
      TaskUse use;
      multiply_inserted(team, matrices, {}, {.slices = slices}, use);
      expect_near(matrices.c, dense, 0, 1e-13);
    }
  });
}

TEST(error, is_small_for_a_product_and_large_for_a_wrong_one) {
  const Team team(nearly_square(rank_count()));
  const Layout layout{130, 32, team.grid(), Shape::full};
  const UniformSource a(layout.n, 3), b(layout.n, 4);
  Matrices matrices = make(team, layout, a, b);
  for_each_tile_of_mine(matrices.c, [&](int i, int j) {
    std::fill_n(matrices.c.handle(i, j), layout.extent(i) * layout.extent(j), 0.0);
  });
  TaskUse use;
  multiply_messages(team, matrices, {}, {}, use);
  for (const int tiles : {0, 1, 3, 1000}) {
    EXPECT_LT(error(team, matrices.c, a, b, tiles), 0.1) << tiles;
  }
  if (matrices.c.is_mine(4, 4)) matrices.c.handle(4, 4)[0] += 1e-9;
  EXPECT_GT(error(team, matrices.c, a, b, 1000), 1);
}

TEST(timed_kernels, run_the_whole_graph_and_change_nothing) {
  const Team team(nearly_square(rank_count()));
  const Layout layout{100, 16, team.grid(), Shape::full};
  const UniformSource a(layout.n, 3), b(layout.n, 4);
  const KernelTimes measured = measure_kernels(layout.tile);
  for (const double time : measured) EXPECT_GT(time, 0);
  for (const auto multiply : {&multiply_messages, &multiply_inserted}) {
    Matrices matrices = make(team, layout, a, b);
    TaskUse use;
    multiply(team, matrices, Kernels(measured, layout.tile), {}, use);
    EXPECT_EQ(use.bytes_received == 0, rank_count() == 1);
    for_each_tile_of_mine(matrices.c,
                          [&](int i, int j) { EXPECT_EQ(matrices.c.tile(i, j)[0], before); });
  }
}

}  // namespace
}  // namespace matmul
