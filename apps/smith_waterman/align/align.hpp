// SPDX-License-Identifier: BSD-3-Clause
// The alignment itself, once its end is known; in memory in proportion to the sequences, with one
// thread. Knows nothing of tiles of ranks.
#pragma once

#include <string>
#include <vector>

#include "../kernel/kernel.hpp"

namespace smith_waterman {

struct Alignment {
  std::int64_t first_a = 0;  // the first letters that take part, from 0
  std::int64_t first_b = 0;
  std::string columns;  // '=' equal, 'X' different, 'A' a letter of a alone, 'B' one of b alone
};

// Local: one of those with this score that end in this cell. Global: one of those with the largest
// score; the cell is the last one.
// REQUIRES: the score is the one that the matrix has there.
[[nodiscard]] Alignment align(const Scoring& scoring, const std::vector<Letter>& a,
                              const std::vector<Letter>& b, const Cell& end);

// What the columns count; and what the alignment is made of.
struct Count {
  Score score = 0;
  std::int64_t letters_a = 0;
  std::int64_t letters_b = 0;
  std::int64_t equal = 0;
};
// Counts by the letters themselves, and looks whether '=' and 'X' are right: a wrong one, or
// letters that are not there, throw std::logic_error.
[[nodiscard]] Count count(const Scoring& scoring, const std::vector<Letter>& a,
                          const std::vector<Letter>& b, const Alignment& alignment);

// Blocks of lines for people: a, what is equal, b, with the numbers of letters from 1.
void print(const std::vector<Letter>& a, const std::vector<Letter>& b,
           const Alignment& alignment);

}  // namespace smith_waterman
