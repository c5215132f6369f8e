// SPDX-License-Identifier: BSD-3-Clause
// Compares whole matrices with those of the "scan" kernels of parasail (Daily, 2016). If opening a
// gap costs nothing, the "striped" kernels of Debian 12's parasail have many wrong cells, and at
// times a wrong score (its own plain loop and the definition agree with "scan"), and sw_diag
// answers -2147483643 for some sequences.
#include <gtest/gtest.h>
#include <parasail.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel.hpp"
#include "sequence/sequence.hpp"

namespace smith_waterman {
namespace {

using Letters = std::vector<Letter>;
using Matrix = std::unique_ptr<parasail_matrix_t, decltype(&parasail_matrix_free)>;
using Result = std::unique_ptr<parasail_result_t, decltype(&parasail_result_free)>;

Matrix matrix_of(const Scoring& scoring) {
  Matrix matrix(parasail_matrix_create("AGCT", scoring.match, scoring.transversion),
                &parasail_matrix_free);
  for (const auto& [a, b] : {std::pair{0, 1}, {1, 0}, {2, 3}, {3, 2}}) {
    parasail_matrix_set_value(matrix.get(), a, b, scoring.transition);
  }
  return matrix;
}

std::string text_of(const Letters& letters) {
  std::string text;
  for (const Letter letter : letters) text += smith_waterman::text_of(letter);
  return text;
}

// Compares all cells, by tiles of this height and width, of which each row's and column's last
// cells are seen.
void compare(const Scoring& scoring, const Letters& a, const Letters& b, int height, int width) {
  const Matrix matrix = matrix_of(scoring);
  const std::string text_a = text_of(a);
  const std::string text_b = text_of(b);
  const int rows = static_cast<int>(a.size());
  const int columns = static_cast<int>(b.size());
  const auto function = scoring.local ? &parasail_sw_table_scan_32
                                      : &parasail_nw_table_scan_32;
  const Result result(function(text_a.c_str(), rows, text_b.c_str(), columns, -scoring.gap,
                               -scoring.gap, matrix.get()),
                      &parasail_result_free);
  const int* const cells = parasail_result_get_score_table(result.get());
  const auto cell = [&](int i, int j) { return cells[static_cast<std::int64_t>(i) * columns + j]; };
  std::vector<Score> row(b.size());
  for (int j = 0; j < columns; ++j) row[std::size_t(j)] = scoring.local ? 0 : scoring.gap * (j + 1);
  Largest largest;
  for (int i = 0; i < rows; i += height) {
    const int tile_rows = std::min(height, rows - i);
    std::vector<Score> column(static_cast<std::size_t>(tile_rows));
    for (int k = 0; k < tile_rows; ++k) {
      column[std::size_t(k)] = scoring.local ? 0 : scoring.gap * (i + k + 1);
    }
    Score corner = scoring.local ? 0 : scoring.gap * i;
    for (int j = 0; j < columns; j += width) {
      const int tile_columns = std::min(width, columns - j);
      compute(scoring,
              {.a = a.data() + i, .rows = tile_rows, .b = b.data() + j, .columns = tile_columns,
               .column = column.data(), .row = row.data() + j, .corner = &corner},
              {i, j}, &largest);
      for (int k = 0; k < tile_rows; ++k) {
        ASSERT_EQ(column[std::size_t(k)], cell(i + k, j + tile_columns - 1)) << i + k << ", " << j;
      }
    }
    for (int j = 0; j < columns; ++j) {
      ASSERT_EQ(row[std::size_t(j)], cell(i + tile_rows - 1, j)) << i << ", " << j;
    }
  }
  if (scoring.local) {
    EXPECT_EQ(largest.first().score, parasail_result_get_score(result.get()));
  } else {
    EXPECT_EQ(row.back(), parasail_result_get_score(result.get()));
  }
}

TEST(Parasail, has_the_same_matrix) {
  const Letters a = random_letters(1300, 1);
  Letters b = a;
  for (std::size_t i = 0; i < b.size(); i += 13) b[i] ^= 1 + (i % 3);
  b.erase(b.begin() + 400, b.begin() + 450);
  const Letters other = random_letters(900, 2);
  for (const bool local : {true, false}) {
    const Scoring scoring{.local = local};
    const Scoring wide{.match = 5, .transition = 1, .transversion = -7, .gap = -3, .local = local};
    for (const Scoring& one : {scoring, wide}) {
      compare(one, a, b, 1, 1 << 20);
      compare(one, a, other, 17, 1);
      compare(one, a, b, 290, 300);
      compare(one, other, a, 64, 77);
      compare(one, a, b, 1 << 20, 1 << 20);
    }
  }
}

}  // namespace
}  // namespace smith_waterman
