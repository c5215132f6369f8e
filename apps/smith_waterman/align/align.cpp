// SPDX-License-Identifier: BSD-3-Clause
// By Hirschberg, 1975: the alignment goes through the middle row of the matrix in a column where
// the best scores of what is above and of what is below have the largest sum; both halves are
// aligned in the same way. Rows come from the tile kernel. A small rest is traced back in its
// matrix.
#include "align.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

namespace smith_waterman {
namespace {

using Letters = std::span<const Letter>;
constexpr std::size_t traced_cells = 1 << 18;  // at most, a byte each

// The last row of the matrix of a global alignment, with the cell before the first column in front.
std::vector<Score> last_row(const Scoring& scoring, Letters a, Letters b) {
  std::vector<Score> row(b.size() + 1);
  std::vector<Score> column(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) column[i] = scoring.gap * static_cast<Score>(i + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = scoring.gap * static_cast<Score>(j);
  Score corner = 0;
  row[0] = column.back();
  compute(scoring,
          {.a = a.data(), .rows = static_cast<int>(a.size()), .b = b.data(),
           .columns = static_cast<int>(b.size()), .column = column.data(), .row = row.data() + 1,
           .corner = &corner},
          {}, nullptr);
  return row;
}

class Hirschberg {
 public:
  Hirschberg(const Scoring& scoring, Letters a, Letters b)
      : scoring_(scoring), a_(a), b_(b), backwards_a_(a.rbegin(), a.rend()),
        backwards_b_(b.rbegin(), b.rend()) {}

  std::string run() && {
    align({0, a_.size()}, {0, b_.size()});
    return std::move(columns_);
  }

 private:
  struct Range {
    std::size_t begin;
    std::size_t end;
    [[nodiscard]] std::size_t size() const { return end - begin; }
  };
  [[nodiscard]] static Letters part(Letters whole, Range range) {
    return whole.subspan(range.begin, range.size());
  }
  [[nodiscard]] static Letters backwards(Letters whole, Range range) {
    return whole.subspan(whole.size() - range.end, range.size());
  }

  // Halves a, so that it calls itself as often as its length has digits.
  void align(Range a, Range b) {
    if (a.size() == 0 || b.size() == 0) {
      columns_.append(a.size(), 'A').append(b.size(), 'B');
      return;
    }
    if (a.size() == 1 || (a.size() + 1) * (b.size() + 1) <= traced_cells) {
      return trace(part(a_, a), part(b_, b));
    }
    const std::size_t middle = a.begin + a.size() / 2;
    std::size_t best_column = 0;
    {
      const auto above = last_row(scoring_, part(a_, {a.begin, middle}), part(b_, b));
      const auto below = last_row(scoring_, backwards(backwards_a_, {middle, a.end}),
                                  backwards(backwards_b_, b));
      Score best = above[0] + below[b.size()];
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const Score sum = above[j] + below[b.size() - j];
        if (sum > best) {
          best = sum;
          best_column = j;
        }
      }
    }
    align({a.begin, middle}, {b.begin, b.begin + best_column});
    align({middle, a.end}, {b.begin + best_column, b.end});
  }

  // With a byte for each cell, in which way it is reached. A single letter of a needs as many as b
  // has letters.
  void trace(Letters a, Letters b) {
    const std::size_t width = b.size() + 1;
    std::vector<char> ways((a.size() + 1) * width, 'B');
    std::vector<Score> row(width);
    for (std::size_t j = 0; j < width; ++j) row[j] = scoring_.gap * static_cast<Score>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
      Score diagonal = row[0];
      row[0] += scoring_.gap;
      ways[i * width] = 'A';
      for (std::size_t j = 1; j < width; ++j) {
        const Score up = row[j];
        const Score pair = diagonal + scoring_.of(a[i - 1], b[j - 1]);
        const Score alone = std::max(up, row[j - 1]) + scoring_.gap;
        row[j] = std::max(pair, alone);
        char& way = ways[i * width + j];
        if (pair >= alone) way = a[i - 1] == b[j - 1] ? '=' : 'X';
        else if (up >= row[j - 1]) way = 'A';
        diagonal = up;
      }
    }
    std::string backwards;
    for (std::size_t i = a.size(), j = b.size(); i > 0 || j > 0;) {
      const char way = ways[i * width + j];
      backwards += way;
      if (way != 'B') --i;
      if (way != 'A') --j;
    }
    columns_.append(backwards.rbegin(), backwards.rend());
  }

  const Scoring scoring_;
  const Letters a_;
  const Letters b_;
  const std::vector<Letter> backwards_a_;
  const std::vector<Letter> backwards_b_;
  std::string columns_;
};

// Where a local alignment begins that ends here: read backwards from its end, it is a global one
// of beginnings, none of which has a larger score, or it would not be the best. The search goes
// through rows until it has found one.
std::array<std::int64_t, 2> find_begin(const Scoring& global, const std::vector<Letter>& a,
                                       const std::vector<Letter>& b, const Cell& end) {
  const std::vector<Letter> backwards_a(a.rend() - end.row - 1, a.rend());
  const std::vector<Letter> backwards_b(b.rend() - end.column - 1, b.rend());
  constexpr std::int64_t rows_max = 256;
  std::vector<Score> row(backwards_b.size());
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = global.gap * static_cast<Score>(j + 1);
  Largest largest;
  for (std::int64_t i = 0; i <= end.row && largest.first().score < end.score; i += rows_max) {
    const auto rows = std::min(rows_max, end.row + 1 - i);
    std::vector<Score> column(static_cast<std::size_t>(rows));
    for (std::size_t k = 0; k < column.size(); ++k) {
      column[k] = global.gap * static_cast<Score>(i + static_cast<std::int64_t>(k) + 1);
    }
    Score corner = global.gap * static_cast<Score>(i);
    compute(global,
            {.a = backwards_a.data() + i, .rows = static_cast<int>(rows),
             .b = backwards_b.data(), .columns = static_cast<int>(row.size()),
             .column = column.data(), .row = row.data(), .corner = &corner},
            {.row = i, .column = 0}, &largest);
  }
  const Cell first = largest.first();
  if (first.score != end.score) {
    throw std::logic_error(fmt::format("the alignment that ends with a score of {} is found to "
                                       "have {}", end.score, first.score));
  }
  return {end.row - first.row, end.column - first.column};
}

}  // namespace

Alignment align(const Scoring& scoring, const std::vector<Letter>& a,
                const std::vector<Letter>& b, const Cell& end) {
  Alignment alignment;
  if (end.row < 0) return alignment;  // nothing is aligned
  Scoring global = scoring;
  global.local = false;
  if (scoring.local) {
    const auto begin = find_begin(global, a, b, end);
    alignment.first_a = begin[0];
    alignment.first_b = begin[1];
  }
  const auto part = [](const std::vector<Letter>& letters, std::int64_t from, std::int64_t last) {
    return Letters(letters).subspan(static_cast<std::size_t>(from),
                                    static_cast<std::size_t>(last + 1 - from));
  };
  alignment.columns = Hirschberg(global, part(a, alignment.first_a, end.row),
                                 part(b, alignment.first_b, end.column))
                          .run();
  return alignment;
}

Count count(const Scoring& scoring, const std::vector<Letter>& a, const std::vector<Letter>& b,
            const Alignment& alignment) {
  Count count;
  const auto next = [](const std::vector<Letter>& letters, std::int64_t first,
                       std::int64_t& taken) {
    return letters.at(static_cast<std::size_t>(first + taken++));
  };
  for (const char column : alignment.columns) {
    if (column == 'A') {
      (void)next(a, alignment.first_a, count.letters_a);
      count.score += scoring.gap;
    } else if (column == 'B') {
      (void)next(b, alignment.first_b, count.letters_b);
      count.score += scoring.gap;
    } else {
      const Letter one = next(a, alignment.first_a, count.letters_a);
      const Letter other = next(b, alignment.first_b, count.letters_b);
      if ((one == other) != (column == '=')) {
        throw std::logic_error("a pair is called what it is not");
      }
      count.score += scoring.of(one, other);
      count.equal += one == other ? 1 : 0;
    }
  }
  return count;
}

void print(const std::vector<Letter>& a, const std::vector<Letter>& b,
           const Alignment& alignment) {
  constexpr std::size_t width = 60;
  std::int64_t at_a = alignment.first_a;
  std::int64_t at_b = alignment.first_b;
  for (std::size_t first = 0; first < alignment.columns.size(); first += width) {
    std::string line_a;
    std::string equal;
    std::string line_b;
    const std::int64_t begin_a = at_a;
    const std::int64_t begin_b = at_b;
    for (const char column : alignment.columns.substr(first, width)) {
      const auto letter = [](const std::vector<Letter>& letters, std::int64_t& at) {
        return "AGCT"[letters[static_cast<std::size_t>(at++)]];
      };
      line_a += column == 'B' ? '-' : letter(a, at_a);
      line_b += column == 'A' ? '-' : letter(b, at_b);
      equal += column == '=' ? '|' : ' ';
    }
    fmt::print("A {:>10} {} {}\n  {:>10} {}\nB {:>10} {} {}\n\n", begin_a + 1, line_a, at_a, "",
               equal, begin_b + 1, line_b, at_b);
  }
}

}  // namespace smith_waterman
