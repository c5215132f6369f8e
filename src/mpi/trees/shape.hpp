// SPDX-License-Identifier: BSD-3-Clause
// The shape of a tree along which one rank's message reaches others: from whom each gets it, and
// how many get it through each. Used by to_all.cpp; knows no MPI and no rank: the root is 0, the
// others are 1, 2, ... in the order in which the caller lists them.
//
// Thread safety: none is needed.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace imbrex::mpi::trees {

struct Place {
  int parent = 0;  // 0: the root
  int below = 0;   // how many get it through this one
};

// Each gets it from the one before. In segments, all links are in use at once.
[[nodiscard]] inline Place in_chain(const int place, const int others) noexcept {
  return {place - 1, others - place};
}

// Each that has it gives it to the one that has half of the rest behind it: the parent of a place
// is that place without its lowest bit. The root sends ceil(log2(others + 1)) times.
[[nodiscard]] inline Place in_binomial(const int place, const int others) noexcept {
  const int bit = 1 << std::countr_zero(static_cast<unsigned>(place));
  const int last = place + bit - 1;
  return {place - bit, (last < others ? last : others) - place};
}

// The place of each of `others`, from 1 on; that of the root says how many there are.
template <class Shape>
[[nodiscard]] std::vector<Place> places_of(const int others, Shape shape) {
  std::vector<Place> all(static_cast<std::size_t>(others) + 1);
  all[0] = {-1, others};
  for (int place = 1; place <= others; ++place) {
    all[static_cast<std::size_t>(place)] = shape(place, others);
  }
  return all;
}

}  // namespace imbrex::mpi::trees
