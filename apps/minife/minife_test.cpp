// SPDX-License-Identifier: BSD-3-Clause
// Tests of minife, run on 1, 2 and 4 ranks. Methodology: elements and series against closed forms;
// the system of all ranks against the system of a single rank; solutions against the series, and
// those of all variants against each other, to the last bit.
#include <gtest/gtest.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <bit>
#include <cmath>

#include "element.hpp"
#include "series.hpp"
#include "solve.hpp"

namespace minife {
namespace {

constexpr Variant all_variants[] = {Variant::blocking, Variant::tasks, Variant::iterate,
                                    Variant::test_each, Variant::blocking_tasks};

using sparse::Box;
using sparse::Brick;
using sparse::Point;

TEST(series, is_a_sixth_in_the_middle) {
  EXPECT_NEAR(temperature(0.5, 0.5, 0.5, 300), 1. / 6, 1e-12);
}

TEST(series, six_hot_faces_sum_to_one_everywhere) {
  const double x = 0.3;
  const double y = 0.45;
  const double z = 0.6;
  const double sum = temperature(x, y, z, 60) + temperature(1 - x, y, z, 60) +
                     temperature(y, x, z, 60) + temperature(1 - y, x, z, 60) +
                     temperature(z, y, x, 60) + temperature(1 - z, y, x, 60);
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(series, is_zero_on_cold_faces_and_finite_with_many_terms) {
  EXPECT_NEAR(temperature(0, 0.5, 0.5, 300), 0, 1e-12);
  EXPECT_NEAR(temperature(0.5, 0, 0.5, 300), 0, 1e-12);
  EXPECT_NEAR(temperature(1, 0.5, 0.5, 300), 1, 0.01);
}

ElementNodes box(double x, double y, double z) {
  ElementNodes nodes;
  for (std::size_t i = 0; i < element_nodes; ++i) {
    nodes[i] = {x * static_cast<double>(i & 1), y * static_cast<double>(i >> 1 & 1),
                z * static_cast<double>(i >> 2)};
  }
  return nodes;
}

TEST(element, a_cube_has_the_known_matrix) {
  const double h = 0.25;
  const Element element = integrate(box(h, h, h));
  for (std::size_t i = 0; i < element_nodes; ++i) {
    for (std::size_t j = 0; j < element_nodes; ++j) {
      const int apart = std::popcount(i ^ j);  // along so many edges
      const double expected = apart == 0 ? h / 3 : apart == 1 ? 0 : -h / 12;
      EXPECT_NEAR(element.matrix[i][j], expected, 1e-15) << i << ", " << j;
    }
    EXPECT_NEAR(element.load[i], h * h * h / 8, 1e-15);
  }
}

TEST(element, a_skew_element_has_the_energy_of_linear_functions) {
  ElementNodes nodes = box(1, 2, 0.5);
  for (auto& node : nodes) node = {node[0] + 0.3 * node[1], node[1] - 0.2 * node[2], node[2]};
  const Element element = integrate(nodes);
  const double a[3] = {1.5, -0.7, 2};
  double energy = 0;
  double volume = 0;
  for (std::size_t i = 0; i < element_nodes; ++i) {
    double row = 0;
    double sum = 0;
    for (std::size_t j = 0; j < element_nodes; ++j) {
      double u = 0;
      for (std::size_t d = 0; d < 3; ++d) u += a[d] * nodes[j][d];
      row += element.matrix[i][j] * u;
      sum += element.matrix[i][j];
      EXPECT_NEAR(element.matrix[i][j], element.matrix[j][i], 1e-14);
    }
    EXPECT_NEAR(sum, 0, 1e-14);  // a constant has no gradient
    for (std::size_t d = 0; d < 3; ++d) energy += a[d] * nodes[i][d] * row;
    volume += element.load[i];
  }
  EXPECT_NEAR(volume, 1, 1e-14);
  EXPECT_NEAR(energy, 1.5 * 1.5 + 0.7 * 0.7 + 4, 1e-12);
}

class SystemTest : public testing::Test {
 protected:
  SystemTest() {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  }
  [[nodiscard]] Problem problem(int n, double source) const {
    return {sparse::grid_of_cubes(n, ranks_, 1).points, source};
  }
  [[nodiscard]] Brick brick(const Problem& problem, int blocks) const {
    return Brick(nodes_of({problem.elements, sparse::nearly_cubic(ranks_), blocks}), rank_);
  }
  int ranks_ = 0;
  int rank_ = 0;
};

double number_of(const Point& node) {
  return std::sin(1.0 + node[0] + 17.0 * node[1] + 300.0 * node[2]);
}

template <class Visit>
void for_each_point(const Box& box, Visit&& visit) {
  for (int z = box.from[2]; z < box.to[2]; ++z) {
    for (int y = box.from[1]; y < box.to[1]; ++y) {
      for (int x = box.from[0]; x < box.to[0]; ++x) visit(Point{x, y, z});
    }
  }
}

std::size_t place_of(const Brick& brick, const Point& local) {
  return static_cast<std::size_t>(brick.at(local[0], local[1], local[2]));
}

Point global(const Brick& brick, const Point& local) {
  return {local[0] + brick.first()[0], local[1] + brick.first()[1], local[2] + brick.first()[2]};
}

// A times a vector of known numbers. Without messages: the layer is filled in too.
std::vector<double> product_of(const Brick& brick, const System& system) {
  std::vector<double> vector(brick.size());
  Box all = brick.owned();
  for (std::size_t d = 0; d < 3; ++d) {
    --all.from[d];
    ++all.to[d];
  }
  for_each_point(all, [&](const Point& point) {
    vector[place_of(brick, point)] = number_of(global(brick, point));
  });
  std::vector<double> product(brick.size());
  for (std::size_t block = 0; block < brick.blocks().size(); ++block) {
    sparse::multiply(brick, brick.blocks()[block], system.rows[block], vector, product);
  }
  return product;
}

TEST_F(SystemTest, is_the_one_of_a_single_rank_for_any_ranks_and_sub_blocks) {
  for (const int n : {2, 5}) {
    const Problem whole = problem(n, 1);
    const Brick alone(nodes_of({whole.elements, {1, 1, 1}, 1}), 0);
    const System expected = assemble(whole, alone);
    const std::vector<double> expected_product = product_of(alone, expected);
    for (const int blocks : {1, 3, 64}) {
      const Brick mine = brick(whole, blocks);
      const System system = assemble(whole, mine);
      const std::vector<double> product = product_of(mine, system);
      for_each_point(mine.owned(), [&](const Point& point) {
        const std::size_t there = place_of(alone, global(mine, point));
        ASSERT_EQ(system.load[place_of(mine, point)], expected.load[there]);
        ASSERT_EQ(product[place_of(mine, point)], expected_product[there]);
      });
    }
  }
}

TEST_F(SystemTest, is_symmetric_and_holds_its_boundary) {
  const Problem whole{{4, 3, 5}, 1};
  const Brick alone(nodes_of({whole.elements, {1, 1, 1}, 1}), 0);
  const System system = assemble(whole, alone);
  const sparse::Rows& rows = system.rows[0];
  std::vector<std::vector<double>> dense(alone.size(), std::vector<double>(alone.size()));
  std::size_t row = 0;
  for_each_point(alone.owned(), [&](const Point& point) {
    for (int entry = rows.begin[row]; entry < rows.begin[row + 1]; ++entry) {
      const auto place = static_cast<std::size_t>(entry);
      dense[place_of(alone, point)][static_cast<std::size_t>(rows.column[place])] =
          rows.value[place];
    }
    ++row;
  });
  for_each_point(alone.owned(), [&](const Point& point) {
    const std::size_t place = place_of(alone, point);
    for (std::size_t other = 0; other < dense.size(); ++other) {
      ASSERT_NEAR(dense[place][other], dense[other][place], 1e-15);
    }
    bool held = false;
    for (std::size_t d = 0; d < 3; ++d) {
      held = held || point[d] == 0 || point[d] == whole.elements[d];
    }
    if (!held) return;
    EXPECT_EQ(dense[place][place], 1);
    EXPECT_EQ(system.load[place], point[0] == whole.elements[0] ? 1 : 0);
  });
}

struct Solution {
  double middle;
  Outcome outcome;
  Vectors vectors;
};

Solution solve_once(const Problem& problem, const Brick& brick, Variant variant, int iterations) {
  const System system = assemble(problem, brick);
  Solution solution{};
  solution.outcome =
      solve({brick, system, {}}, MPI_COMM_WORLD, variant, iterations, solution.vectors);
  solution.middle = value_in_the_middle(problem, brick, solution.vectors.x);
  return solution;
}

TEST_F(SystemTest, has_a_solution_that_comes_close_to_the_series) {
  double errors[2];
  for (const int round : {0, 1}) {
    const Problem whole{{8 << round, 8 << round, 8 << round}, 0};
    const Solution solution = solve_once(whole, brick(whole, 4), Variant::blocking, 100);
    errors[round] = std::abs(solution.middle - temperature(0.5, 0.5, 0.5, 300));
    EXPECT_LT(solution.outcome.residual, 1e-10);
  }
  EXPECT_LT(errors[1], 2e-3);
  EXPECT_NEAR(errors[0] / errors[1], 4, 1);  // the order of linear elements
}

TEST_F(SystemTest, with_a_source_is_warmer_by_what_is_known) {
  double middle[2];
  for (const int round : {0, 1}) {
    const Problem whole{{8 << round, 8 << round, 8 << round}, 1};
    middle[round] = solve_once(whole, brick(whole, 4), Variant::tasks, 100).middle;
  }
  // The error that the mesh adds falls by four.
  EXPECT_NEAR((4 * middle[1] - middle[0]) / 3, 1. / 6 + 0.0562128, 5e-4);
}

TEST_F(SystemTest, with_an_odd_number_of_elements_is_interpolated_in_the_middle) {
  const Problem whole{{9, 15, 9}, 0};
  const Solution solution = solve_once(whole, brick(whole, 4), Variant::tasks, 100);
  EXPECT_NEAR(solution.middle, 1. / 6, 1e-2);
}

TEST_F(SystemTest, has_the_same_solution_in_all_variants_to_the_last_bit) {
  const Problem whole = problem(6, 1);
  for (const int blocks : {1, 2, 7, 16}) {
    const Brick mine = brick(whole, blocks);
    const Solution expected = solve_once(whole, mine, Variant::blocking, 30);
    for (const Variant variant : all_variants) {
      const Solution solution = solve_once(whole, mine, variant, 30);
      EXPECT_EQ(solution.vectors.x, expected.vectors.x);
      EXPECT_EQ(solution.vectors.r, expected.vectors.r);
      EXPECT_EQ(solution.outcome.iterations, expected.outcome.iterations);
      EXPECT_EQ(solution.outcome.residual, expected.outcome.residual);
      EXPECT_GT(solution.outcome.kernel_s, 0);
    }
  }
}

TEST_F(SystemTest, stays_solved_in_iterations_that_are_too_many) {
  const Problem whole = problem(2, 1);
  for (const Variant variant : all_variants) {
    const Solution some = solve_once(whole, brick(whole, 2), variant, 60);
    const Solution more = solve_once(whole, brick(whole, 2), variant, 100);
    EXPECT_LT(some.outcome.iterations, 60);
    EXPECT_EQ(some.outcome.iterations, more.outcome.iterations);
    EXPECT_EQ(some.vectors.x, more.vectors.x);
    EXPECT_LE(more.outcome.residual, 1e-15);
  }
}

TEST_F(SystemTest, with_timed_kernels_sleeps_as_long_and_changes_nothing) {
  const Problem whole = problem(4, 1);
  const Brick mine = brick(whole, 4);
  System system;
  system.load.assign(mine.size(), 1);
  for (const Variant variant : all_variants) {
    Vectors vectors;
    const Outcome outcome =
        solve({mine, system, {1e-3, 2e-4, 1e-4}}, MPI_COMM_WORLD, variant, 5, vectors);
    EXPECT_GE(outcome.kernel_s, 1e-4 + 5 * (1e-3 + 3 * 2e-4 + 2 * 1e-4));
    EXPECT_EQ(vectors.x, std::vector<double>(mine.size()));
  }
  for (const double time : measure_kernels(6, 1000)) EXPECT_GT(time, 0);
}

// All other ranks wait for the multiplications of rank 1, in each of the iterations.
TEST_F(SystemTest, holds_a_worker_while_a_task_that_blocks_waits) {
  if (ranks_ == 1) return;
  const Problem whole = problem(4, 1);
  const Brick mine = brick(whole, 4);
  System system;
  system.load.assign(mine.size(), 1);
  Vectors vectors;
  const tiled::KernelTimes times{rank_ == 1 ? 2e-2 : 1e-5, 1e-5, 1e-5};
  const Outcome outcome =
      solve({mine, system, times}, MPI_COMM_WORLD, Variant::blocking_tasks, 5, vectors);
  if (rank_ != 1) {
    EXPECT_GE(outcome.in_task_s - outcome.kernel_s, 5 * 4e-3);
  }
}

}  // namespace
}  // namespace minife
