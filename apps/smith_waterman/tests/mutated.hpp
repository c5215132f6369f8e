// SPDX-License-Identifier: BSD-3-Clause
// Sequences that are like each other, for tests.
#pragma once

#include <random>
#include <vector>

#include "kernel/kernel.hpp"

namespace smith_waterman {

using Letters = std::vector<Letter>;

// The letters of `from` with one in `every` changed, and some left out or doubled.
inline Letters mutated(std::mt19937& random, const Letters& from, unsigned every) {
  Letters letters;
  for (const Letter letter : from) {
    const unsigned draw = random() % (3 * every);
    if (draw != 1) letters.push_back(draw == 0 ? static_cast<Letter>(random() % 4) : letter);
    if (draw == 2) letters.push_back(letter);
  }
  if (letters.empty()) letters.push_back(0);
  return letters;
}

}  // namespace smith_waterman
