// SPDX-License-Identifier: BSD-3-Clause
// Tests of the parts of cholesky, run on 1, 2 and 4 ranks. Methodology: every rank runs the same
// tests in the same order; what is computed in tiles on every possible grid is compared with one
// dense LAPACK computation that each rank makes for itself.
#include <cblas.h>
#include <gtest/gtest.h>
#include <imbrex/imbrex.hpp>
#include <lapacke.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <set>
#include <tuple>

#include "../factor.hpp"
#include "../geo/kriging.hpp"
#include "../../kernels.hpp"
#include "../solve.hpp"

namespace cholesky {
namespace {

struct Shape {
  std::int64_t n;
  int tile;
};
// One tile; tiles that fit; a last tile of 1, and of tile - 1; more tiles than slots; 1 x 1.
constexpr Shape shapes[] = {{1, 1}, {7, 7}, {64, 16}, {65, 16}, {79, 16}, {150, 8}, {40, 64}};

int rank_count() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

std::vector<Grid> all_grids() {
  std::vector<Grid> grids;
  for (int rows = 1; rows <= rank_count(); ++rows) {
    if (rank_count() % rows == 0) grids.push_back({rows, rank_count() / rows});
  }
  return grids;
}

std::int64_t factor(const Team& team, TiledMatrix& matrix, bool with_tasks, int lookahead = 2,
                    TaskUse* memory = nullptr) {
  if (!with_tasks) return factor_fork_join(team, matrix, {});
  TaskUse ignored;
  const auto priorities = static_cast<Priorities>(lookahead % 3);
  return factor_tasks(team, matrix, {}, {.lookahead = lookahead, .priorities = priorities},
                      memory != nullptr ? *memory : ignored);
}

std::vector<double> dense_factor(const Source& source, std::int64_t n) {
  const int rows = static_cast<int>(n);
  std::vector<double> a(static_cast<std::size_t>(n * n));
  source.fill({0, 0, rows, rows}, a.data());
  EXPECT_EQ(LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', rows, a.data(), rows), 0);
  return a;
}

void expect_equal_lower(const TiledMatrix& matrix, const std::vector<double>& dense) {
  const Layout& layout = matrix.layout();
  for (int i = 0; i < layout.tiles(); ++i) {
    for (int j = 0; j <= i; ++j) {
      if (!matrix.is_mine(i, j)) continue;
      for (int c = 0; c < layout.extent(j); ++c) {
        for (int r = i == j ? c : 0; r < layout.extent(i); ++r) {
          const auto at = static_cast<std::size_t>((layout.first(j) + c) * layout.n +
                                                   layout.first(i) + r);
          ASSERT_NEAR(matrix.tile(i, j)[c * layout.extent(i) + r], dense[at],
                      1e-11 * std::abs(dense[at]) + 1e-13)
              << "tile " << i << ", " << j << " row " << r << " column " << c;
        }
      }
    }
  }
}

std::vector<Site> some_sites(int count) {
  std::vector<Site> sites;
  for (int i = 0; i < count; ++i) {
    const double x = i * std::numbers::phi - std::floor(i * std::numbers::phi);
    sites.push_back({30 + 10 * x, -100 + 0.25 * i, 100 * std::sin(0.3 * i) + 50 * x, i + 2});
  }
  return sites;
}

constexpr CovarianceModel some_model{1.5, 300, 4000, 50, Distance::chordal};

TEST(readers_of_a_tile, are_the_ranks_whose_updates_use_it) {
  for (const Grid grid : {Grid{1, 1}, Grid{1, 2}, Grid{2, 2}, Grid{2, 3}, Grid{3, 5}}) {
    const Layout layout{90, 9, grid};
    for (int k = 0; k < layout.tiles(); ++k) {
      for (int i = k; i < layout.tiles(); ++i) {
        std::set<int> expected;
        for (int m = k + 1; i == k && m < layout.tiles(); ++m) expected.insert(layout.owner(m, k));
        for (int j = k + 1; i != k && j <= i; ++j) expected.insert(layout.owner(i, j));
        for (int m = i; i != k && m < layout.tiles(); ++m) expected.insert(layout.owner(m, i));
        expected.erase(layout.owner(i, k));
        const std::vector<int> found = readers(layout, i, k);
        EXPECT_EQ(std::vector<int>(expected.begin(), expected.end()), found) << i << ", " << k;
      }
    }
  }
}

// Pereira et al. 2021, Tables 4 and 2: n in tiles of 512, whole tiles only.
TEST(task_count, is_that_of_the_paper) {
  const std::tuple<std::int64_t, Grid, std::int64_t, std::int64_t> table[] = {
      {80, {1, 1}, 88560, 0},           {101, {1, 2}, 176851, 10100},
      {128, {2, 2}, 357760, 32512},     {161, {2, 4}, 708561, 102082},
      {203, {4, 4}, 1414910, 243616},   {256, {4, 8}, 2829056, 640632},
      {256, {4, 4}, 2829056, 388624},   {256, {8, 8}, 2829056, 892640},
      {256, {8, 16}, 2829056, 1372880}};
  for (const auto& [tiles, grid, computation, communication] : table) {
    const TaskCount count = count_tasks({tiles * 512, 512, grid});
    EXPECT_EQ(count.computation(), computation) << tiles;
    EXPECT_EQ(count.communication(), communication) << tiles;
  }
}

TEST(both_variants, find_the_factor_that_lapack_finds_on_every_grid_and_shape) {
  for (const Grid grid : all_grids()) {
    const Team team(grid);
    for (const auto& [n, tile] : shapes) {
      const RandomSource source(n, 7, 0);
      const std::vector<double> dense = dense_factor(source, n);
      for (const bool with_tasks : {false, true}) {
        for (const int lookahead : {1, 2, 100}) {
          SCOPED_TRACE(testing::Message() << grid.rows << "x" << grid.columns << " n " << n
                                          << " tasks " << with_tasks << " " << lookahead);
          TiledMatrix matrix({n, tile, grid}, team.rank());
          fill(matrix, source);
          ASSERT_EQ(factor(team, matrix, with_tasks, lookahead), 0);
          expect_equal_lower(matrix, dense);
        }
      }
    }
  }
}

void expect_same_bits(const TiledMatrix& a, const TiledMatrix& b) {
  const Layout& layout = a.layout();
  for_each_tile_of_mine(a, [&](int i, int j) {
    const std::ptrdiff_t count = std::ptrdiff_t{layout.extent(i)} * layout.extent(j);
    ASSERT_TRUE(std::equal(a.tile(i, j), a.tile(i, j) + count, b.tile(i, j)))
        << "tile " << i << ", " << j;
  });
}

TEST(inserted_tasks, find_the_factor_of_those_with_messages_to_the_last_bit) {
  for (const Grid grid : all_grids()) {
    const Team team(grid);
    for (const auto& [n, tile] : shapes) {
      const RandomSource source(n, 7, 0);
      TiledMatrix expected({n, tile, grid}, team.rank());
      fill(expected, source);
      ASSERT_EQ(factor(team, expected, true), 0);
      // The whole loop, with the default window and with one of two tasks; and trimmed, without a
      // bound.
      for (const std::int64_t window : {4096, 2, 0}) {
        SCOPED_TRACE(testing::Message() << grid.rows << "x" << grid.columns << " n " << n
                                        << " window " << window);
        TiledMatrix matrix({n, tile, grid}, team.rank());
        fill(matrix, source);
        TaskUse use;
        const auto priorities = window == 2 ? Priorities::sends : Priorities::panel;
        ASSERT_EQ(factor_inserted(team, matrix, {},
                                  {.lookahead = 0, .priorities = priorities, .trim = window == 0,
                                   .window = window}, use), 0);
        expect_same_bits(matrix, expected);
        EXPECT_EQ(use.tiles_peak == 0, use.bytes_received == 0);
      }
    }
  }
}

// Each tile comes once to each rank that reads it, by whatever way.
TEST(inserted_tasks, send_each_tile_once_to_each_reader_and_find_the_broadcasts) {
  const Team team(nearly_square(rank_count()));
  const Layout layout{80, 8, team.grid()};
  TiledMatrix matrix(layout, team.rank());
  fill(matrix, RandomSource(layout.n, 1, 0));
  TaskUse use;
  const Kernels kernels({1e-3, 1e-4, 1e-4, 1e-4}, layout.tile);
  ASSERT_EQ(factor_inserted(team, matrix, kernels,
                            {.lookahead = 0, .priorities = Priorities::panel, .window = 0}, use),
            0);
  const Broadcasts all = sum_over_ranks(team, use.broadcasts);
  std::int64_t to_several = 0;
  for (int k = 0; k < layout.tiles(); ++k) {
    for (int i = k; i < layout.tiles(); ++i) {
      if (readers(layout, i, k).size() > 1) ++to_several;
    }
  }
  EXPECT_EQ(all.root_copies + all.relay_copies, count_tasks(layout).send);
  EXPECT_EQ(all.to_several, to_several);
  EXPECT_LE(all.full, all.to_several);
  std::int64_t received = use.bytes_received;
  MPI_Allreduce(MPI_IN_PLACE, &received, 1, MPI_INT64_T, MPI_SUM, team.all());
  EXPECT_EQ(received, count_tasks(layout).send * 8 * 8 * 8);
}

TEST(both_variants, name_the_first_leading_minor_that_is_not_positive_on_all_ranks) {
  for (const Grid grid : all_grids()) {
    const Team team(grid);
    for (const std::int64_t minor : {1, 15, 16, 17, 40, 78, 79}) {
      const RandomSource source(79, 3, minor);
      for (const bool with_tasks : {false, true}) {
        TiledMatrix matrix({79, 16, grid}, team.rank());
        fill(matrix, source);
        EXPECT_EQ(factor(team, matrix, with_tasks), minor) << with_tasks;
      }
      for (const bool trim : {false, true}) {
        TiledMatrix matrix({79, 16, grid}, team.rank());
        fill(matrix, source);
        TaskUse use;
        EXPECT_EQ(factor_inserted(team, matrix, {}, {.lookahead = 0, .priorities = Priorities::none,
                                                     .trim = trim}, use), minor);
      }
    }
  }
}

TEST(tasks, keep_no_more_received_tiles_than_the_lookahead_allows) {
  const Team team(nearly_square(rank_count()));
  const Layout layout{400, 10, team.grid()};
  for (const int lookahead : {1, 3}) {
    TiledMatrix matrix(layout, team.rank());
    fill(matrix, RandomSource(layout.n, 1, 0));
    TaskUse memory;
    ASSERT_EQ(factor(team, matrix, true, lookahead, &memory), 0);
    EXPECT_LE(memory.tiles_peak, static_cast<std::size_t>(lookahead * layout.tiles()));
    EXPECT_EQ(memory.tiles_peak == 0, rank_count() == 1);
    // Whole tiles only, so all messages are of one size.
    std::int64_t sent = memory.bytes_sent;
    MPI_Allreduce(MPI_IN_PLACE, &sent, 1, MPI_INT64_T, MPI_SUM, team.all());
    EXPECT_EQ(sent, count_tasks(layout).send * 10 * 10 * 8);
  }
}

TEST(timed_kernels, take_their_time_by_the_work_they_stand_for_and_leave_the_tile_alone) {
  const int tile = 8;
  const Kernels kernels({0.01, 0.02, 0.03, 0.04}, tile);
  std::vector<double> a(tile * tile, 1.0);
  const std::vector<double> before = a;
  const ConstTile whole{before.data(), tile, tile};
  const auto seconds = [](auto&& kernel) {
    const auto start = std::chrono::steady_clock::now();
    kernel();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  EXPECT_GE(seconds([&] { EXPECT_EQ(kernels.potrf({a.data(), tile, tile}), 0); }), 0.01);
  EXPECT_GE(seconds([&] { kernels.trsm(whole, {a.data(), tile, tile}); }), 0.02);
  EXPECT_GE(seconds([&] { kernels.syrk(whole, {a.data(), tile, tile}); }), 0.03);
  EXPECT_GE(seconds([&] { kernels.gemm(whole, whole, {a.data(), tile, tile}); }), 0.04);
  EXPECT_EQ(a, before);
  // A hundredth of the work; of several, because a machine may stand still.
  double least = 1;
  const Kernels slow({0, 0, 0, 1}, 100);
  for (int i = 0; i < 20; ++i) {
    least = std::min(least, seconds([&] { slow.gemm({nullptr, 10, 10}, {nullptr, 100, 10},
                                                    {nullptr, 10, 100}); }));
  }
  EXPECT_GE(least, 0.01);
  EXPECT_LT(least, 0.5);
}

// The messages are those of the real factorisation: what is received is what was filled in.
TEST(timed_kernels, run_the_whole_graph_and_change_nothing) {
  const Team team(nearly_square(rank_count()));
  const Layout layout{100, 16, team.grid()};
  const RandomSource source(layout.n, 1, 0);
  const KernelTimes measured = measure_kernels(layout.tile);
  for (const double time : measured) EXPECT_GT(time, 0);
  const TaskOptions options{.lookahead = 2, .priorities = Priorities::sends};
  for (const int variant : {0, 1, 2}) {
    TiledMatrix matrix(layout, team.rank());
    fill(matrix, source);
    const Kernels kernels(measured, layout.tile);
    TaskUse memory;
    ASSERT_EQ(variant == 0   ? factor_fork_join(team, matrix, kernels)
              : variant == 1 ? factor_tasks(team, matrix, kernels, options, memory)
                             : factor_inserted(team, matrix, kernels, options, memory),
              0);
    EXPECT_EQ(memory.tiles_peak == 0, rank_count() == 1 || variant == 0);
    for (int i = 0; i < layout.tiles(); ++i) {
      for (int j = 0; j < i; ++j) {
        if (matrix.is_mine(i, j)) {
          EXPECT_EQ(matrix.tile(i, j)[0], source.entry(layout.first(i), layout.first(j)));
        }
      }
    }
  }
}

TEST(residual, is_small_for_a_factor_and_what_was_put_in_for_a_wrong_one) {
  const Team team(nearly_square(rank_count()));
  const std::int64_t n = 130;
  const RandomSource source(n, 5, 0);
  TiledMatrix matrix({n, 32, team.grid()}, team.rank());
  fill(matrix, source);
  ASSERT_EQ(factor(team, matrix, true), 0);
  EXPECT_LT(residual(team, matrix, source, {}).value, 1);
  EXPECT_LT(residual(team, matrix, source, {.exact_limit = 0, .probes = 32}).value, 1);

  // L + d e e^T at entry (100, 3): the product changes by d (e l^T + l e^T) + d^2 e e^T.
  const double d = 1e-3;
  std::vector<double> dense = dense_factor(source, n);
  if (matrix.is_mine(3, 0)) matrix.handle(3, 0)[3 * 32 + 4] += d;
  double squares = 0;
  double a_squares = 0;
  for (std::int64_t r = 0; r < n; ++r) {
    const double l = r < 3 ? 0 : dense[static_cast<std::size_t>(3 * n + r)];
    squares += r == 100 ? (2 * d * l + d * d) * (2 * d * l + d * d) : 2 * d * l * d * l;
    for (std::int64_t c = 0; c < n; ++c) a_squares += source.entry(r, c) * source.entry(r, c);
  }
  const double expected = std::sqrt(squares / a_squares) / (static_cast<double>(n) * 0x1p-53);
  EXPECT_NEAR(residual(team, matrix, source, {}).value, expected, 1e-6 * expected);
  const double guess = residual(team, matrix, source, {.exact_limit = 0, .probes = 64}).value;
  EXPECT_NEAR(guess, expected, 0.4 * expected);
  EXPECT_GT(expected, 10);
}

TEST(forward_solve_and_determinant, agree_with_the_dense_ones) {
  for (const Grid grid : all_grids()) {
    const Team team(grid);
    const int n = 79;
    const RandomSource source(n, 11, 0);
    const std::vector<double> dense = dense_factor(source, n);
    TiledMatrix matrix({n, 16, grid}, team.rank());
    fill(matrix, source);
    ASSERT_EQ(factor(team, matrix, true), 0);
    MultiVector b(n, 3);
    for (std::size_t i = 0; i < b.entries.size(); ++i) {
      b.entries[i] = std::cos(static_cast<double>(i));
    }
    MultiVector expected = b;
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, n, 3, 1.0,
                dense.data(), n, expected.entries.data(), n);
    solve_forward(team, matrix, b);
    double logarithm = 0;
    for (std::size_t i = 0; i < n; ++i) logarithm += 2 * std::log(dense[i * n + i]);
    EXPECT_NEAR(log_determinant(team, matrix), logarithm, 1e-10 * logarithm);
    for (std::size_t i = 0; i < b.entries.size(); ++i) {
      ASSERT_NEAR(b.entries[i], expected.entries[i], 1e-13);
    }
  }
}

// Compares kriging with the textbook's formula, which needs A^-1 explicitly.
TEST(kriging, agrees_with_the_explicit_inverse_on_every_grid) {
  const std::vector<Site> sites = some_sites(90);
  const Split parts = split(sites, 9);
  ASSERT_EQ(parts.held_out.size(), 10U);
  ASSERT_EQ(parts.known.size(), 80U);
  const Covariance covariance(some_model, sites);
  const CovarianceSource source(covariance, parts.known, some_model.nugget);
  const int n = 80;
  std::vector<double> inverse = dense_factor(source, n);
  double determinant = 0;
  for (std::size_t i = 0; i < n; ++i) determinant += 2 * std::log(inverse[i * n + i]);
  ASSERT_EQ(LAPACKE_dpotri(LAPACK_COL_MAJOR, 'L', n, inverse.data(), n), 0);
  const auto at = [&](std::size_t i, std::size_t j) {
    return inverse[std::min(i, j) * n + std::max(i, j)];
  };
  const auto value = [&](std::size_t i) { return sites[parts.known[i]].value; };

  double ones = 0;
  double weighted = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      ones += at(i, j);
      weighted += at(i, j) * value(j);
    }
  }
  const double mean = weighted / ones;
  double quadratic = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      quadratic += (value(i) - mean) * at(i, j) * (value(j) - mean);
    }
  }
  double squares = 0;
  for (const std::size_t t : parts.held_out) {
    double prediction = mean;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        prediction += covariance.between(parts.known[i], t) * at(i, j) * (value(j) - mean);
      }
    }
    squares += (prediction - sites[t].value) * (prediction - sites[t].value);
  }
  const double likelihood = -0.5 * (quadratic + determinant + n * std::log(2 * std::numbers::pi));

  for (const Grid grid : all_grids()) {
    const Team team(grid);
    for (const bool with_tasks : {false, true}) {
      TiledMatrix matrix({n, 17, grid}, team.rank());
      fill(matrix, source);
      ASSERT_EQ(factor(team, matrix, with_tasks), 0);
      const Kriging result = krige(team, matrix, some_model, sites, parts);
      EXPECT_NEAR(result.mean, mean, 1e-8);
      EXPECT_NEAR(result.log_likelihood, likelihood, 1e-8);
      EXPECT_NEAR(result.rmse, std::sqrt(squares / 10), 1e-8);
      EXPECT_LT(result.rmse, result.rmse_mean);
    }
  }
}

TEST(covariance, has_the_closed_forms_and_the_size_of_the_earth) {
  // London and Paris.
  const std::vector<Site> sites{{51.5074, -0.1278, 0, 2}, {48.8566, 2.3522, 0, 3}};
  for (const double smoothness : {0.5, 1.5, 2.5}) {
    const Covariance c({smoothness, 200, 7, 1, Distance::chordal}, sites);
    const double d = c.distance_km(0, 1) / 200;
    EXPECT_NEAR(c.distance_km(0, 1), 343.5, 0.5);
    const double s = std::sqrt(2 * smoothness) * d;
    const double polynomial = smoothness == 0.5   ? 1
                              : smoothness == 1.5 ? 1 + s
                                                  : 1 + s + 5 * d * d / 3;
    EXPECT_NEAR(c.between(0, 1), 7 * polynomial * std::exp(-s), 1e-12);
    EXPECT_EQ(c.between(1, 1), 7);
  }
  const std::vector<Site> poles{{90, 0, 0, 2}, {-90, 0, 0, 3}};
  const Covariance along({0.5, 200, 7, 1, Distance::great_circle}, poles);
  EXPECT_NEAR(along.distance_km(0, 1), std::numbers::pi * 6371.0088, 1e-6);
  EXPECT_NE(check({1.5, 200, 7, 1, Distance::great_circle}), "");
  EXPECT_NE(check({1.0, 200, 7, 1, Distance::chordal}), "");
  EXPECT_NE(check({1.5, 0, 7, 1, Distance::chordal}), "");
  EXPECT_NE(check({1.5, 200, -7, 1, Distance::chordal}), "");
  EXPECT_NE(check({1.5, 200, 7, -1, Distance::chordal}), "");
  EXPECT_EQ(check(some_model), "");
}

TEST(sites, are_read_with_quotes_and_any_order_of_columns) {
  const std::vector<Site> sites = parse_sites(
      "lon,name,h,lat\r\n-100.5,\"a \"\"b\"\", c\",12.5,40\r\n\n-90,d,-3,41.25", "h");
  ASSERT_EQ(sites.size(), 2U);
  EXPECT_EQ(sites[0].longitude, -100.5);
  EXPECT_EQ(sites[0].latitude, 40);
  EXPECT_EQ(sites[0].value, 12.5);
  EXPECT_EQ(sites[1].value, -3);
  EXPECT_EQ(sites[1].line, 4);
}

TEST(sites, malformed_sites_are_named_by_line_and_reason) {
  const auto message = [](const char* text) -> std::string {
    try {
      (void)parse_sites(text, "h");
    } catch (const FileError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(""), "the file is empty");
  EXPECT_EQ(message("lat,lon,h\n"), "the file has a first line, but no data");
  EXPECT_EQ(message("lat,lon,z\n1,2,3\n"),
            "line 1: no column is called \"h\"; there are: lat, lon, z");
  EXPECT_EQ(message("lat,lon,h\n1,2,3\n1,2\n"),
            "line 3: 2 fields, but the first line names 3 columns");
  EXPECT_EQ(message("lat,lon,h\n1,2,high\n"), "line 2: h is \"high\", which is not a number");
  EXPECT_EQ(message("lat,lon,h\n1,2,\n"), "line 2: h is \"\", which is not a number");
  EXPECT_EQ(message("lat,lon,h\n1,2,3 m\n"), "line 2: h is \"3 m\", which is not a number");
  EXPECT_EQ(message("lat,lon,h\n1,2,nan\n"), "line 2: h is \"nan\", which is not a number");
  EXPECT_EQ(message("lat,lon,h\n91,2,3\n"), "line 2: lat is 91, outside -90 to 90 degrees");
  EXPECT_EQ(message("lat,lon,h\n1,-181,3\n"), "line 2: lon is -181, outside -180 to 180 degrees");
  EXPECT_EQ(message("lat,lon,h\n1,2,\"3\n"), "line 2: a quoted field has no end");
}

TEST(grids, are_nearly_square_or_refused_with_a_reason) {
  EXPECT_EQ(nearly_square(12).rows, 3);
  EXPECT_EQ(nearly_square(7).rows, 1);
  EXPECT_EQ(nearly_square(16).columns, 4);
  EXPECT_EQ(parse_grid("2x3", 6).columns, 3);
  for (const char* text : {"", "x", "2", "2x", "x2", "2x3x1", "-1x-2", "0x2", "2 x 1", "axb",
                           "99999999999x1"}) {
    EXPECT_THROW((void)parse_grid(text, 2), InputError) << text;
  }
  EXPECT_THROW((void)parse_grid("2x2", 2), InputError);
}

TEST(fail_together, gives_every_rank_the_text_of_the_lowest_that_failed) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int last = rank_count() - 1;
  EXPECT_NO_THROW(fail_together(MPI_COMM_WORLD, ""));
  try {
    fail_together(MPI_COMM_WORLD, rank == last ? "the last" : "");
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "the last");
  }
}

}  // namespace
}  // namespace cholesky
