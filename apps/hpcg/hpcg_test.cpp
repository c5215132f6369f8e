// SPDX-License-Identifier: BSD-3-Clause
// Tests of hpcg, run on 1, 2 and 4 ranks. Methodology: kernels against dense arithmetic; sub-blocks
// of one rank against as many ranks with one block, which is the reference; all variants against
// each other to the last bit; the validity tests on a right and on a wrong operator.
#include <gtest/gtest.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <cmath>

#include "validity.hpp"

namespace hpcg {
namespace {

using sparse::Brick;
using sparse::BrickShape;
using sparse::Point;

constexpr Variant all_variants[] = {Variant::blocking, Variant::tasks, Variant::iterate,
                                    Variant::test_each, Variant::blocking_tasks};

class HpcgTest : public testing::Test {
 protected:
  HpcgTest() {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  }
  [[nodiscard]] BrickShape shape(int n, int blocks) const {
    return sparse::grid_of_cubes(n, ranks_, blocks);
  }
  int ranks_ = 0;
  int rank_ = 0;
};

template <class Visit>
void for_each_owned(const Brick& brick, Visit&& visit) {
  const Point& end = brick.owned().to;
  for (int z = 0; z < end[2]; ++z) {
    for (int y = 0; y < end[1]; ++y) {
      for (int x = 0; x < end[0]; ++x) visit(Point{x, y, z});
    }
  }
}

std::size_t place_of(const Brick& brick, const Point& point) {
  return static_cast<std::size_t>(brick.at(point[0], point[1], point[2]));
}

double number_of(const Brick& brick, const Point& point) {
  return std::sin(1.0 + point[0] + brick.first()[0] + 17.0 * (point[1] + brick.first()[1]) +
                  300.0 * (point[2] + brick.first()[2]));
}

std::vector<double> numbered(const Brick& brick) {
  std::vector<double> vector(brick.size());
  for_each_owned(brick, [&](const Point& point) {
    vector[place_of(brick, point)] = number_of(brick, point);
  });
  return vector;
}

TEST_F(HpcgTest, levels_halve_and_the_coarse_points_lie_on_even_ones) {
  const auto levels = make_levels({{16, 8, 24}, {1, 1, 1}, 5}, 0, true);
  ASSERT_EQ(levels.size(), 4U);
  EXPECT_EQ(levels[3]->brick.global(), (Point{2, 1, 3}));
  for (std::size_t l = 1; l < levels.size(); ++l) {
    std::int64_t points = 0;
    for (std::size_t c = 0; c < levels[l]->block_count(); ++c) {
      EXPECT_FALSE(levels[l]->finer[c].empty());
      points += levels[l]->brick.blocks()[c].count();
    }
    EXPECT_EQ(points, levels[l]->brick.owned().count());
  }
}

TEST_F(HpcgTest, the_right_side_is_what_the_operator_makes_of_ones) {
  for (const int blocks : {1, 4}) {
    const Problem problem(shape(8, blocks), MPI_COMM_WORLD, {});
    const Brick& brick = problem.finest().brick;
    const std::vector<double> side = right_side(problem.finest());
    Solver solver(problem, Variant::blocking);
    std::vector<double> product;
    solver.multiply(std::vector<double>(brick.size(), 1), product);
    double entries = 0;
    for_each_owned(brick, [&](const Point& point) {
      ASSERT_EQ(product[place_of(brick, point)], side[place_of(brick, point)]);
      entries += 27 - side[place_of(brick, point)];
    });
    MPI_Allreduce(MPI_IN_PLACE, &entries, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(entries, entries_of(brick.global()));
  }
}

// The reference, written for one rank and one block without any matrix.
double sum_around(const Brick& brick, const std::vector<double>& x, const Point& at) {
  double sum = 0;
  for (int c = -1; c <= 1; ++c) {
    for (int b = -1; b <= 1; ++b) {
      for (int a = -1; a <= 1; ++a) {
        const Point other{at[0] + a, at[1] + b, at[2] + c};
        bool there = a != 0 || b != 0 || c != 0;
        for (std::size_t d = 0; d < 3; ++d) {
          there = there && other[d] >= 0 && other[d] < brick.global()[d];
        }
        if (there) sum += x[place_of(brick, other)];
      }
    }
  }
  return sum;
}

std::vector<double> swept(const Brick& brick, const std::vector<double>& side,
                          std::vector<double> x) {
  const auto relax = [&](const Point& at) {
    x[place_of(brick, at)] = (side[place_of(brick, at)] + sum_around(brick, x, at)) / 26;
  };
  std::vector<Point> order;
  for_each_owned(brick, [&](const Point& point) { order.push_back(point); });
  for (const Point& point : order) relax(point);
  for (auto point = order.rbegin(); point != order.rend(); ++point) relax(*point);
  return x;
}

std::vector<double> cycled(const Point& points, int levels, const std::vector<double>& side) {
  const Brick brick({points, {1, 1, 1}, 1}, 0);
  std::vector<double> x = swept(brick, side, std::vector<double>(brick.size()));
  if (levels == 1) return x;
  const Point half{points[0] / 2, points[1] / 2, points[2] / 2};
  const Brick coarse({half, {1, 1, 1}, 1}, 0);
  std::vector<double> coarse_side(coarse.size());
  for_each_owned(coarse, [&](const Point& point) {
    const Point at{2 * point[0], 2 * point[1], 2 * point[2]};
    const double product = 26 * x[place_of(brick, at)] - sum_around(brick, x, at);
    coarse_side[place_of(coarse, point)] = side[place_of(brick, at)] - product;
  });
  const std::vector<double> correction = cycled(half, levels - 1, coarse_side);
  for_each_owned(coarse, [&](const Point& point) {
    const Point at{2 * point[0], 2 * point[1], 2 * point[2]};
    x[place_of(brick, at)] += correction[place_of(coarse, point)];
  });
  return swept(brick, side, x);
}

TEST_F(HpcgTest, a_cycle_on_one_block_is_that_of_the_textbook) {
  const Point points{16, 8, 24};
  const Problem problem({points, {1, 1, 1}, 1}, MPI_COMM_SELF, {});
  const Brick& brick = problem.finest().brick;
  const std::vector<double> side = numbered(brick);
  const std::vector<double> expected = cycled(points, 4, side);
  for (const Variant variant : all_variants) {
    Solver solver(problem, variant);
    for (int again = 0; again < 2; ++again) {
      std::vector<double> found;
      solver.precondition(side, found);
      for_each_owned(brick, [&](const Point& point) {
        ASSERT_NEAR(found[place_of(brick, point)], expected[place_of(brick, point)], 1e-14);
      });
    }
  }
}

TEST_F(HpcgTest, smoothing_one_block_is_gauss_seidel_forward_and_backward) {
  const Level level({{5, 4, 6}, {1, 1, 1}, 1}, 0, true);
  const std::vector<double> side = numbered(level.brick);
  const std::vector<double> from(level.brick.size(), 0.25);
  std::vector<double> to(level.brick.size());
  smooth(level, 0, side, from, to);
  const std::vector<double> expected = swept(level.brick, side, from);
  for_each_owned(level.brick, [&](const Point& point) {
    ASSERT_NEAR(to[place_of(level.brick, point)], expected[place_of(level.brick, point)], 1e-14);
  });
}

// The oracle: sub-blocks that see each other's values before a sweep are as many ranks.
TEST_F(HpcgTest, a_cycle_of_ranks_is_that_of_as_many_sub_blocks_to_the_last_bit) {
  const BrickShape parts = shape(16, 1);
  BrickShape alone = parts;
  alone.ranks = {1, 1, 1};
  alone.blocks = ranks_;
  const Problem together(parts, MPI_COMM_WORLD, {});
  const Problem mine(alone, MPI_COMM_SELF, {});
  ASSERT_EQ(mine.finest().block_count(), static_cast<std::size_t>(ranks_));
  const Brick& here = together.finest().brick;
  const Brick& whole = mine.finest().brick;
  for (const Variant variant : all_variants) {
    std::vector<double> expected;
    std::vector<double> found;
    Solver(mine, variant).precondition(numbered(whole), expected);
    Solver(together, variant).precondition(numbered(here), found);
    for_each_owned(here, [&](const Point& point) {
      const Point global{point[0] + here.first()[0], point[1] + here.first()[1],
                         point[2] + here.first()[2]};
      ASSERT_EQ(found[place_of(here, point)], expected[place_of(whole, global)]);
    });
  }
}

TEST_F(HpcgTest, all_variants_give_the_same_bits) {
  for (const int blocks : {1, 3, 16}) {
    const Problem problem(shape(16, blocks), MPI_COMM_WORLD, {});
    const std::vector<double> side = right_side(problem.finest());
    std::vector<double> expected;
    const Limits limits{.iterations = 8};
    const Outcome first = Solver(problem, Variant::blocking).solve(side, limits, expected);
    for (const Variant variant : all_variants) {
      Solver solver(problem, variant);
      for (int again = 0; again < 2; ++again) {
        std::vector<double> found;
        const Outcome outcome = solver.solve(side, limits, found);
        EXPECT_EQ(found, expected);
        EXPECT_EQ(outcome.residual, first.residual);
        EXPECT_EQ(outcome.iterations, 8);
        EXPECT_GT(outcome.kernel_s, 0);
      }
    }
  }
}

TEST_F(HpcgTest, iterations_one_by_one_are_those_that_are_under_way_at_once) {
  const Problem problem(shape(8, 4), MPI_COMM_WORLD, {});
  const std::vector<double> side = right_side(problem.finest());
  for (const Variant variant : {Variant::tasks, Variant::iterate}) {
    Solver solver(problem, variant);
    std::vector<double> a;
    std::vector<double> b;
    const Outcome at_once = solver.solve(side, {.iterations = 6}, a);
    const Outcome bounded = solver.solve(side, {.iterations = 6, .tolerance = 1e-300}, b);
    EXPECT_EQ(a, b);
    EXPECT_EQ(at_once.residual, bounded.residual);
    EXPECT_EQ(bounded.iterations, 6);
  }
}

TEST_F(HpcgTest, a_task_that_decides_ends_the_loop_where_a_test_between_iterations_does) {
  const Problem problem(shape(8, 4), MPI_COMM_WORLD, {});
  const std::vector<double> side = right_side(problem.finest());
  for (const double tolerance : {2.0, 1e-2, 1e-6}) {
    const Limits limits{.iterations = 50, .tolerance = tolerance};
    std::vector<double> expected;
    std::vector<double> found;
    const Outcome between = Solver(problem, Variant::tasks).solve(side, limits, expected);
    const Outcome inside = Solver(problem, Variant::iterate).solve(side, limits, found);
    EXPECT_LT(between.iterations, 50);
    EXPECT_EQ(between.iterations == 0, tolerance > 1);
    EXPECT_EQ(inside.iterations, between.iterations);
    EXPECT_EQ(inside.residual, between.residual);
    EXPECT_EQ(found, expected);
  }
}

TEST_F(HpcgTest, the_solution_is_one_everywhere) {
  for (const bool preconditioned : {false, true}) {
    const Problem problem(shape(8, 4), MPI_COMM_WORLD, {});
    const Brick& brick = problem.finest().brick;
    std::vector<double> solution;
    const Outcome outcome =
        Solver(problem, Variant::tasks)
            .solve(right_side(problem.finest()),
                   {.iterations = 200, .tolerance = 1e-12, .preconditioned = preconditioned},
                   solution);
    EXPECT_LE(outcome.residual, 1e-12);
    EXPECT_LT(outcome.iterations, preconditioned ? 30 : 100);
    for_each_owned(brick, [&](const Point& point) {
      ASSERT_NEAR(solution[place_of(brick, point)], 1, 1e-9);
    });
  }
}

TEST_F(HpcgTest, a_right_operator_passes_the_validity_tests) {
  for (const Variant variant : all_variants) {
    Problem problem(shape(16, 4), MPI_COMM_WORLD, {});
    const Convergence convergence = test_convergence(problem, variant);
    EXPECT_TRUE(convergence.passed()) << convergence.plain << ", " << convergence.preconditioned;
    EXPECT_GT(convergence.plain, convergence.preconditioned);
    const Symmetry symmetry = test_symmetry(problem, variant);
    EXPECT_TRUE(symmetry.passed()) << symmetry.multiply << ", " << symmetry.cycle;
    // The diagonal is as it was.
    EXPECT_EQ(right_side(problem.finest()).size(), problem.finest().brick.size());
    const Operator& first = problem.finest().operators[0];
    EXPECT_EQ(first.rows.value[static_cast<std::size_t>(first.diagonal[0])], 26);
  }
}

TEST_F(HpcgTest, an_operator_that_is_not_symmetric_is_found) {
  Problem problem(shape(16, 4), MPI_COMM_WORLD, {});
  problem.finest().operators[0].rows.value[1] = -1.001;
  const Symmetry symmetry = test_symmetry(problem, Variant::tasks);
  EXPECT_GT(symmetry.multiply, 1);
  EXPECT_GT(symmetry.cycle, 1);
}

TEST_F(HpcgTest, kernels_that_sleep_take_their_time_in_all_iterations) {
  const tiled::KernelTimes times{2e-4, 1e-4, 1e-4, 1e-4, 0};
  const Problem problem(shape(16, 4), MPI_COMM_WORLD, times);
  for (const Variant variant : all_variants) {
    std::vector<double> solution;
    const Outcome outcome = Solver(problem, variant)
                                .solve(right_side(problem.finest()), {.iterations = 3}, solution);
    EXPECT_EQ(outcome.iterations, 3);
    // On the finest level: two smoothings, two products, three additions, three sums.
    EXPECT_GE(outcome.kernel_s, 3 * (2 * 2e-4 + 2 * 1e-4 + 3 * 1e-4 + 3 * 1e-4));
    EXPECT_EQ(solution, std::vector<double>(problem.finest().brick.size()));
  }
  for (const double time : measure_kernels(8, 4096)) EXPECT_GT(time, 0);
}

TEST(operations, are_those_of_the_reference) {
  // 8^3 points: 10,648, 1,000, 64 and 1 entries.
  const double rows = 512;
  const double cycle = 10 * 10648.0 + 10 * 1000.0 + 10 * 64.0 + 4 * 1.0;
  EXPECT_EQ(operations_of({8, 8, 8}, 1),
            2 * (4 * 2 * rows) + 2 * 2 * 10648.0 + cycle);
  EXPECT_EQ(variance_of({1, 3}), 1);
  EXPECT_EQ(variance_of({}), 0);
}

}  // namespace
}  // namespace hpcg
