// SPDX-License-Identifier: BSD-3-Clause
// Tests of bricks and their exchange, run on 1, 2 and 4 ranks. Methodology: what a brick says is
// looked at for all ranks of a grid in one process; the exchange is that of the ranks that are
// there.
#include <gtest/gtest.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <map>
#include <vector>

#include "halo.hpp"
#include "rows.hpp"

namespace sparse {
namespace {

TEST(nearly_cubic, cuts_z_most_and_x_least) {
  EXPECT_EQ(nearly_cubic(1), (Point{1, 1, 1}));
  EXPECT_EQ(nearly_cubic(2), (Point{1, 1, 2}));
  EXPECT_EQ(nearly_cubic(4), (Point{1, 2, 2}));
  EXPECT_EQ(nearly_cubic(7), (Point{1, 1, 7}));
  EXPECT_EQ(nearly_cubic(8), (Point{2, 2, 2}));
  EXPECT_EQ(nearly_cubic(12), (Point{2, 2, 3}));
  EXPECT_EQ(nearly_cubic(128), (Point{4, 4, 8}));
}

Box global(const Brick& brick, Box box) {
  for (std::size_t d = 0; d < 3; ++d) {
    box.from[d] += brick.first()[d];
    box.to[d] += brick.first()[d];
  }
  return box;
}

bool equal(const Box& a, const Box& b) { return a.from == b.from && a.to == b.to; }

std::vector<Brick> all_bricks(const BrickShape& shape) {
  std::vector<Brick> bricks;
  const int ranks = shape.ranks[0] * shape.ranks[1] * shape.ranks[2];
  for (int rank = 0; rank < ranks; ++rank) bricks.emplace_back(shape, rank);
  return bricks;
}

const std::vector<BrickShape> shapes{
    {{1, 1, 1}, {1, 1, 1}, 5},   {{5, 4, 9}, {1, 1, 2}, 1},   {{7, 9, 11}, {2, 2, 2}, 6},
    {{3, 3, 3}, {3, 3, 3}, 16},  {{13, 4, 5}, {3, 1, 2}, 12},  {{5, 4, 9}, {1, 1, 2}, 1, 50},
    {{4, 4, 20}, {1, 2, 4}, 2, 100}, {{3, 3, 5}, {1, 1, 3}, 1, 400},
};

TEST(brick, makes_the_first_rank_larger_by_the_imbalance) {
  const auto points_of = [](const int rank) {
    return Brick({{4, 4, 20}, {1, 1, 4}, 1, 100}, rank).owned().count() / 16;
  };
  EXPECT_EQ(points_of(0), 10);  // an even share is 5
  EXPECT_EQ(points_of(1), 3);
  EXPECT_EQ(points_of(2), 3);
  EXPECT_EQ(points_of(3), 4);
}

TEST(brick, gives_each_point_to_one_sub_block_of_one_rank) {
  for (const BrickShape& shape : shapes) {
    std::map<Point, int> owners;
    for (const Brick& brick : all_bricks(shape)) {
      for (const Box& block : brick.blocks()) {
        EXPECT_GT(block.count(), 0);
        const Box box = global(brick, block);
        for (int z = box.from[2]; z < box.to[2]; ++z) {
          for (int y = box.from[1]; y < box.to[1]; ++y) {
            for (int x = box.from[0]; x < box.to[0]; ++x) ++owners[{x, y, z}];
          }
        }
      }
    }
    EXPECT_EQ(owners.size(), static_cast<std::size_t>(shape.points[0]) * shape.points[1] *
                                 shape.points[2]);
    for (const auto& [point, count] : owners) {
      EXPECT_EQ(count, 1);
      for (std::size_t d = 0; d < 3; ++d) EXPECT_LT(point[d], shape.points[d]);
    }
  }
}

TEST(brick, sends_each_neighbour_what_that_receives) {
  for (const BrickShape& shape : shapes) {
    const std::vector<Brick> bricks = all_bricks(shape);
    for (std::size_t rank = 0; rank < bricks.size(); ++rank) {
      for (const Neighbour& neighbour : bricks[rank].neighbours()) {
        const Brick& other = bricks[static_cast<std::size_t>(neighbour.rank)];
        int found = 0;
        for (const Neighbour& back : other.neighbours()) {
          if (back.rank != static_cast<int>(rank)) continue;
          ++found;
          EXPECT_TRUE(equal(global(bricks[rank], neighbour.send), global(other, back.receive)));
        }
        EXPECT_EQ(found, 1);
      }
    }
  }
}

TEST(brick, knows_what_its_sub_blocks_depend_on) {
  const Brick brick({{8, 8, 8}, {1, 1, 2}, 4}, 0);
  // 1 x 2 x 2 sub-blocks of 8 x 4 x 2; the other rank lies above.
  ASSERT_EQ(brick.blocks().size(), 4U);
  ASSERT_EQ(brick.neighbours().size(), 1U);
  EXPECT_EQ(brick.neighbours()[0].touched, (std::vector<int>{2, 3}));
  EXPECT_EQ(brick.neighbours()[0].readers, (std::vector<int>{2, 3}));
  EXPECT_TRUE(brick.awaited(0).empty());
  EXPECT_EQ(brick.awaited(3), (std::vector<int>{0}));
  EXPECT_EQ(brick.around(0), (std::vector<int>{0, 1, 2, 3}));
  const Brick long_one({{2, 2, 9}, {1, 1, 1}, 3}, 0);
  EXPECT_EQ(long_one.around(0), (std::vector<int>{0, 1}));
  EXPECT_EQ(long_one.around(1), (std::vector<int>{0, 1, 2}));
}

double number_of(int x, int y, int z) { return 1 + x + 100.0 * y + 10000.0 * z; }

std::vector<double> numbered(const Brick& brick) {
  std::vector<double> vector(brick.size(), -1);
  const Box& owned = brick.owned();
  for (int z = 0; z < owned.to[2]; ++z) {
    for (int y = 0; y < owned.to[1]; ++y) {
      for (int x = 0; x < owned.to[0]; ++x) {
        vector[static_cast<std::size_t>(brick.at(x, y, z))] =
            number_of(x + brick.first()[0], y + brick.first()[1], z + brick.first()[2]);
      }
    }
  }
  return vector;
}

// Every point of the layer that is in the grid has its number.
void expect_layer(const Brick& brick, const std::vector<double>& vector) {
  const Box& owned = brick.owned();
  for (int z = -1; z <= owned.to[2]; ++z) {
    for (int y = -1; y <= owned.to[1]; ++y) {
      for (int x = -1; x <= owned.to[0]; ++x) {
        const Point at{x + brick.first()[0], y + brick.first()[1], z + brick.first()[2]};
        bool in_grid = true;
        for (std::size_t d = 0; d < 3; ++d) {
          in_grid = in_grid && at[d] >= 0 && at[d] < brick.global()[d];
        }
        ASSERT_EQ(vector[static_cast<std::size_t>(brick.at(x, y, z))],
                  in_grid ? number_of(at[0], at[1], at[2]) : -1);
      }
    }
  }
}

class HaloTest : public testing::Test {
 protected:
  HaloTest() {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  }
  [[nodiscard]] Brick brick(Point ranks) const { return Brick({{9, 8, 7}, ranks, 3}, rank_); }
  [[nodiscard]] std::vector<Point> grids() const {
    return {{1, 1, ranks_}, {ranks_, 1, 1}, nearly_cubic(ranks_)};
  }
  int ranks_ = 0;
  int rank_ = 0;
};

TEST_F(HaloTest, exchange_brings_the_whole_layer) {
  for (const Point& ranks : grids()) {
    const Brick mine = brick(ranks);
    Halo halo(mine, MPI_COMM_WORLD);
    std::vector<double> vector = numbered(mine);
    EXPECT_GE(halo.exchange(vector), 0);
    expect_layer(mine, vector);
    EXPECT_EQ(halo.bytes_sent() == 0, ranks_ == 1);
  }
}

TEST_F(HaloTest, tasks_that_block_or_have_their_requests_tested_bring_the_same) {
  for (const bool test_each : {false, true}) {
    for (const Point& ranks : grids()) {
      const Brick mine = brick(ranks);
      Halo halo(mine, MPI_COMM_WORLD);
      std::vector<double> vector = numbered(mine);
      TestEach tests;
      TestEach* const given = test_each ? &tests : nullptr;
      double sum = 0;
      tests.poll_during([&] {
        for (int n = 0; n < static_cast<int>(mine.neighbours().size()); ++n) {
          imbrex::task("receive").launch([&, n] { halo.receive(vector, n, given); });
          imbrex::task("send").launch([&, n] { halo.send(vector, n, given); });
        }
        imbrex::task("sum").launch([&] {
          sum = sum_over_ranks(rank_ + 1, MPI_COMM_WORLD, given);
        });
      });
      expect_layer(mine, vector);
      EXPECT_EQ(sum, ranks_ * (ranks_ + 1) / 2);
      EXPECT_EQ(tests.tests() > 0, test_each);
    }
  }
}

TEST(rows, have_27_entries_inside_and_fewer_at_the_ends_of_the_grid) {
  const Brick brick({{4, 5, 6}, {1, 1, 2}, 1}, 1);  // its layer below belongs to rank 0
  const Rows rows = pattern_of(brick, brick.blocks()[0]);
  ASSERT_EQ(rows.begin.size(), 4U * 5 * 3 + 1);
  EXPECT_EQ(rows.begin[1], 2 * 2 * 3);
  const int inner = (0 * 5 + 1) * 4 + 1;
  EXPECT_EQ(rows.begin[inner + 1] - rows.begin[inner], 27);
  EXPECT_EQ(rows.column[static_cast<std::size_t>(rows.begin[inner])], brick.at(0, 0, -1));
  for (const int column : rows.column) EXPECT_LT(static_cast<std::size_t>(column), brick.size());
}

TEST(rows, multiply_add_and_dot_are_those_of_the_textbook) {
  const Brick brick({{3, 2, 2}, {1, 1, 1}, 2}, 0);
  std::vector<double> a = numbered(brick);
  std::vector<double> product(brick.size());
  double expected_sum = 0;
  double squares = 0;
  for (int z = 0; z < 2; ++z) {
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 3; ++x) {
        expected_sum += number_of(x, y, z);
        squares += number_of(x, y, z) * number_of(x, y, z);
      }
    }
  }
  double found = 0;
  for (const Box& block : brick.blocks()) {
    Rows rows = pattern_of(brick, block);
    rows.value.assign(rows.value.size(), 1);
    multiply(brick, block, rows, a, product);
    found += dot(brick, block, a, a);
  }
  EXPECT_EQ(found, squares);
  EXPECT_EQ(product[static_cast<std::size_t>(brick.at(1, 1, 0))], expected_sum);  // reaches all
  EXPECT_EQ(product[static_cast<std::size_t>(brick.at(0, 0, 0))],
            expected_sum - number_of(2, 0, 0) - number_of(2, 1, 0) - number_of(2, 0, 1) -
                number_of(2, 1, 1));
  for (const Box& block : brick.blocks()) add(brick, block, a, -2, product, a);
  EXPECT_EQ(a[static_cast<std::size_t>(brick.at(1, 1, 0))], number_of(1, 1, 0) - 2 * expected_sum);
}

}  // namespace
}  // namespace sparse
