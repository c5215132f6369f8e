// SPDX-License-Identifier: BSD-3-Clause
// Methodology: an alignment is right if it counts as many as the matrix says, by its own letters,
// and ends where it should. The matrix is computed by the definition.
#include "align/align.hpp"

#include <gtest/gtest.h>

#include <random>

#include "sequence/sequence.hpp"
#include "tests/mutated.hpp"

namespace smith_waterman {
namespace {

Cell end_of(const Scoring& scoring, const Letters& a, const Letters& b) {
  std::vector<Score> column(a.size());
  std::vector<Score> row(b.size());
  Score corner = 0;
  if (!scoring.local) {
    for (std::size_t i = 0; i < a.size(); ++i) column[i] = scoring.gap * Score(i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) row[j] = scoring.gap * Score(j + 1);
  }
  const Cell first = compute_plainly(
      scoring, {.a = a.data(), .rows = static_cast<int>(a.size()), .b = b.data(),
                .columns = static_cast<int>(b.size()), .column = column.data(),
                .row = row.data(), .corner = &corner});
  if (!scoring.local) {
    return {row.back(), static_cast<std::int64_t>(a.size()) - 1,
            static_cast<std::int64_t>(b.size()) - 1};
  }
  return first.score > 0 ? first : Cell{};
}

void check(const Scoring& scoring, const Letters& a, const Letters& b) {
  const Cell end = end_of(scoring, a, b);
  const Alignment alignment = align(scoring, a, b, end);
  const Count found = count(scoring, a, b, alignment);
  EXPECT_EQ(found.score, end.score);
  EXPECT_EQ(alignment.first_a + found.letters_a - 1, end.row);
  EXPECT_EQ(alignment.first_b + found.letters_b - 1, end.column);
  if (!scoring.local) {
    EXPECT_EQ(alignment.first_a, 0);
    EXPECT_EQ(alignment.first_b, 0);
  } else if (!alignment.columns.empty()) {
    EXPECT_EQ(alignment.columns.front(), '=');  // or it would count more without
    EXPECT_EQ(alignment.columns.back(), '=');
  }
}

TEST(Align, counts_what_the_matrix_says_for_random_sequences) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    Scoring scoring;
    scoring.local = seed % 2 == 0;
    if (seed % 5 == 0) scoring.gap = -7;
    const Letters a = random_letters(1 + random() % 300, seed);
    const Letters b = seed % 4 < 2 ? mutated(random, a, 1 + random() % 40)
                                   : random_letters(1 + random() % 300, seed + 1000);
    check(scoring, a, b);
  }
}

TEST(Align, divides_long_sequences) {
  std::mt19937 random(9);
  const Letters a = random_letters(3000, 1);
  Letters b = random_letters(700, 2);  // a part of b is like a part of a
  const Letters like = mutated(random, {a.begin() + 500, a.begin() + 2600}, 12);
  b.insert(b.end(), like.begin(), like.end());
  check({.local = true}, a, b);
  check({.local = false}, a, b);
  check({.local = false}, a, Letters(2500, 1));
}

TEST(Align, aligns_single_letters_and_a_letter_with_many) {
  for (const bool local : {true, false}) {
    check({.local = local}, {0}, {0});
    check({.local = local}, {0}, {3});
    check({.local = local}, {0}, random_letters(1000, 4));
    check({.local = local}, random_letters(1000, 4), {2});
  }
  EXPECT_TRUE(align({.local = true}, {0}, {3}, Cell{}).columns.empty());
}

TEST(Align, finds_the_one_that_is_right) {
  // ACGTTTACGT with ACGTACGT: TT is left out. Letters: A 0, G 1, C 2, T 3.
  const Letters a{0, 2, 1, 3, 3, 3, 0, 2, 1, 3};
  const Letters b{0, 2, 1, 3, 0, 2, 1, 3};
  const Cell end = end_of({.local = true}, a, b);
  EXPECT_EQ(end.score, 14);
  const Alignment alignment = align({.local = true}, a, b, end);
  EXPECT_EQ(alignment.columns.size(), 10U);
  EXPECT_EQ(count({.local = true}, a, b, alignment).equal, 8);
}

TEST(Count, refuses_columns_that_are_not_true) {
  EXPECT_THROW((void)count({}, {0}, {3}, {0, 0, "="}), std::logic_error);
  EXPECT_THROW((void)count({}, {0}, {0}, {0, 0, "X"}), std::logic_error);
  EXPECT_THROW((void)count({}, {0}, {0}, {0, 0, "=A"}), std::out_of_range);
}

}  // namespace
}  // namespace smith_waterman
