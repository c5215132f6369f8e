// SPDX-License-Identifier: BSD-3-Clause
// Methodology: the definition (compute_plainly) is the model. Tiles lie in the middle of a larger
// matrix, so that the cells around them are those of some alignment, as the kernel requires.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kernel/block.hpp"
#include "kernel/kernel.hpp"
#include "tests/mutated.hpp"
#include "tiles/tiling.hpp"

namespace smith_waterman {
namespace {

Letters random_letters(std::mt19937& random, int length, int kinds = 4) {
  Letters letters(static_cast<std::size_t>(length));
  for (Letter& letter : letters) {
    letter = static_cast<Letter>(random() % static_cast<unsigned>(kinds));
  }
  return letters;
}

// The edges of a tile, owned.
struct Around {
  std::vector<Score> column;
  std::vector<Score> row;
  Score corner = 0;
  bool operator==(const Around&) const = default;
};

Tile tile_of(Around& around, const Letters& a, const Letters& b, int i, int j) {
  return {.a = a.data() + i, .rows = static_cast<int>(around.column.size()), .b = b.data() + j,
          .columns = static_cast<int>(around.row.size()), .column = around.column.data(),
          .row = around.row.data(), .corner = &around.corner};
}

Around matrix_edges(const Scoring& scoring, const Letters& a, const Letters& b) {
  Around around{std::vector<Score>(a.size()), std::vector<Score>(b.size())};
  if (scoring.local) return around;
  for (std::size_t i = 0; i < a.size(); ++i) around.column[i] = scoring.gap * Score(i + 1);
  for (std::size_t j = 0; j < b.size(); ++j) around.row[j] = scoring.gap * Score(j + 1);
  return around;
}

// Around the tile that begins in (i, j) and ends with the sequences; by the definition.
Around around_tile(const Scoring& scoring, const Letters& a, const Letters& b, int i, int j) {
  Around above = matrix_edges(scoring, a, b);
  const std::vector<Score> first_column = above.column;
  above.column.resize(static_cast<std::size_t>(i));
  if (i > 0) compute_plainly(scoring, tile_of(above, a, b, 0, 0));
  Around left{{first_column.begin() + i, first_column.end()}, above.row};
  left.row.resize(static_cast<std::size_t>(j));
  left.corner = i > 0 ? first_column[static_cast<std::size_t>(i - 1)] : 0;
  Around around{left.column, {above.row.begin() + j, above.row.end()}};
  around.corner = j > 0 ? left.row.back() : left.corner;
  if (j > 0) {
    compute_plainly(scoring, tile_of(left, a, b, i, 0));
    around.column = left.column;
  }
  return around;
}

// Compares what compute(), and each kernel where a block suffices, make of the tile.
void compare(const Scoring& scoring, const Letters& a, const Letters& b, int i, int j) {
  const Around before = around_tile(scoring, a, b, i, j);
  Around expected = before;
  const Score left_max = *std::ranges::max_element(before.column);
  Cell first = compute_plainly(scoring, tile_of(expected, a, b, i, j));
  Around got = before;
  Largest largest;
  compute(scoring, tile_of(got, a, b, i, j), {.row = i, .column = j}, &largest);
  ASSERT_EQ(expected.row, got.row);
  ASSERT_EQ(expected.column, got.column);
  ASSERT_EQ(expected.corner, got.corner);
  if (first.score > 0) {
    ASSERT_EQ(first.score, largest.first().score);
    ASSERT_EQ(first.row + i, largest.first().row);
    ASSERT_EQ(first.column + j, largest.first().column);
  } else {
    ASSERT_EQ(largest.first().row, -1);
  }
  if (before.column.size() > 250 || before.row.size() > 250) return;
  for (const ComputeBlock kernel : {ComputeBlock{&compute_block_portably}, compute_block_v3}) {
    if (kernel == nullptr || (kernel == compute_block_v3 && kernel_name()[0] == 'p')) continue;
    Around block = before;
    const Tile tile = tile_of(block, a, b, i, j);
    const Score bound = kernel(scoring,
                               {.a = tile.a, .rows = tile.rows, .b = tile.b,
                                .columns = tile.columns, .column = tile.column, .row = tile.row,
                                .corner = before.corner},
                               true);
    ASSERT_EQ(expected.row, block.row);
    ASSERT_EQ(expected.column, block.column);
    ASSERT_GE(bound, first.score);
    ASSERT_LE(bound, std::max({first.score, left_max, scoring.local ? 0 : INT32_MIN}));
  }
}

TEST(Kernel, computes_what_the_definition_says_for_all_small_shapes) {
  std::mt19937 random(1);
  for (const bool local : {true, false}) {
    const Scoring scoring{.local = local};
    for (const int rows : {1, 2, 15, 16, 17, 31, 33, 48, 49, 63, 64, 65, 80, 127, 129, 150}) {
      for (const int columns : {1, 2, 3, 15, 16, 17, 47, 63, 64, 65, 130}) {
        const Letters a = random_letters(random, rows + 20, 3);
        const Letters b = random_letters(random, columns + 30);
        SCOPED_TRACE(testing::Message() << rows << " x " << columns << " local " << local);
        compare(scoring, a, b, 20, 30);
        compare(scoring, a, b, 20, 0);
        compare(scoring, a, b, 0, 30);
      }
    }
  }
}

TEST(Kernel, agrees_with_the_definition_for_random_scorings_and_similar_sequences) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto from = [&](int least, int most) {
      return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    };
    Scoring scoring;
    scoring.match = from(1, 100);
    scoring.transversion = from(-100, 0);
    scoring.transition = from(scoring.transversion, scoring.match);
    scoring.gap = from(-100, -1);
    if (seed % 3 == 0) scoring = {};
    scoring.local = random() % 2 == 0;
    ASSERT_STREQ(what_is_wrong(scoring), "");
    const Letters a = random_letters(random, from(1, 400), from(1, 4));
    const Letters b = random() % 2 == 0 ? mutated(random, a, static_cast<unsigned>(from(1, 30)))
                                        : random_letters(random, from(1, 400));
    compare(scoring, a, b, static_cast<int>(random() % a.size()),
            static_cast<int>(random() % b.size()));
  }
}

TEST(Kernel, stays_within_16_bits_where_scores_rise_and_fall_most) {
  const Letters same(2300, 0);   // A
  const Letters other(2300, 3);  // T
  Letters turning = same;        // rises along the diagonal, then falls along the edges
  std::fill(turning.begin() + 1200, turning.end(), Letter{3});
  const Scoring steep{.match = 100, .transition = -100, .transversion = -100, .gap = -100};
  const Scoring cheap{.match = 100, .transition = 100, .transversion = -100, .gap = -1};
  const Scoring dear{.match = 1, .transition = -100, .transversion = -100, .gap = -100};
  for (Scoring scoring : {Scoring{}, steep, cheap, dear}) {
    for (const bool local : {true, false}) {
      scoring.local = local;
      compare(scoring, same, same, 0, 0);  // the corner is small, the last cell large
      compare(scoring, same, other, 0, 0);
      compare(scoring, turning, same, 0, 0);
      compare(scoring, same, turning, 1100, 1150);
      compare(scoring, Letters(3, 0), same, 1, 3);
      compare(scoring, same, Letters(3, 0), 3, 1);
    }
  }
}

TEST(Kernel, works_with_scores_that_need_all_of_32_bits) {
  // The cells around the tile are those of a matrix of which all scores are larger by a constant.
  const Scoring scoring{.local = true};
  std::mt19937 random(5);
  const Letters a = random_letters(random, 100);
  const Letters b = mutated(random, a, 10);
  Around around = around_tile({.local = false}, a, b, 0, 0);
  for (Score& score : around.column) score += 2'000'000'000;
  for (Score& score : around.row) score += 2'000'000'000;
  around.corner += 2'000'000'000;
  Around expected = around;
  compute_plainly(scoring, tile_of(expected, a, b, 0, 0));
  compute(scoring, tile_of(around, a, b, 0, 0), {}, nullptr);
  EXPECT_EQ(expected, around);
}

TEST(Kernel, refuses_scorings_that_it_cannot_compute_with) {
  EXPECT_STREQ(what_is_wrong({}), "");
  EXPECT_STRNE(what_is_wrong({.match = 0}), "");
  EXPECT_STRNE(what_is_wrong({.match = 101}), "");
  EXPECT_STRNE(what_is_wrong({.gap = 0}), "");
  EXPECT_STRNE(what_is_wrong({.gap = -101}), "");
  EXPECT_STRNE(what_is_wrong({.transversion = 1}), "");
  EXPECT_STRNE(what_is_wrong({.transition = 3}), "");
  EXPECT_STRNE(what_is_wrong({.transition = -5}), "");
}

TEST(Largest, takes_the_first_row_then_the_first_column_of_the_largest) {
  Largest largest;
  EXPECT_FALSE(largest.may_take(0, 0));
  EXPECT_TRUE(largest.may_take(1, 7));
  largest.offer({.score = 5, .row = 7, .column = 9});
  largest.offer({.score = 5, .row = 8, .column = 1});
  largest.offer({.score = 4, .row = 0, .column = 0});
  EXPECT_EQ(largest.first().row, 7);
  largest.offer({.score = 5, .row = 7, .column = 3});
  EXPECT_EQ(largest.first().column, 3);
  EXPECT_TRUE(largest.may_take(5, 7));
  EXPECT_FALSE(largest.may_take(5, 8));
  EXPECT_FALSE(largest.may_take(4, 0));
}

TEST(Tiling, gives_every_tile_to_a_rank_and_each_diagonal_to_all_in_turn) {
  for (const Distribution distribution : {Distribution::block, Distribution::cyclic}) {
    for (int ranks = 1; ranks < 7; ++ranks) {
      const Tiling tiling{.whole = {1000, 1311}, .outer = {70, 101}, .inner = {7, 9},
                          .ranks = ranks, .distribution = distribution};
      std::int64_t cells = 0;
      int tiles = 0;
      for (int diagonal = 0; diagonal < tiling.diagonals(); ++diagonal) {
        std::vector<int> count(static_cast<std::size_t>(ranks));
        for (int i = tiling.first_of(diagonal); i <= tiling.last_of(diagonal); ++i) {
          const Extent extent = tiling.extent(i, diagonal - i);
          cells += extent.rows * extent.columns;
          ++tiles;
          ++count.at(static_cast<std::size_t>(tiling.home(i, diagonal - i)));
        }
        const auto [least, most] = std::ranges::minmax(count);
        EXPECT_LE(most - least, 1);
      }
      EXPECT_EQ(tiles, tiling.down() * tiling.across());
      EXPECT_EQ(cells, 1000 * 1311);
    }
  }
}

}  // namespace
}  // namespace smith_waterman
