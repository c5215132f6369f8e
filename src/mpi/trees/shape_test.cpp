// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/trees/shape.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace imbrex::mpi::trees {
namespace {

// How many get it through each, counted from the parents.
std::vector<int> count_below(const std::vector<Place>& all) {
  std::vector<int> below(all.size());
  for (std::size_t place = 1; place < all.size(); ++place) {
    for (int up = all[place].parent; up >= 0; up = all[static_cast<std::size_t>(up)].parent) {
      ++below[static_cast<std::size_t>(up)];
    }
  }
  return below;
}

int children_of_root(const std::vector<Place>& all) {
  int children = 0;
  for (std::size_t place = 1; place < all.size(); ++place) children += all[place].parent == 0;
  return children;
}

template <class Shape>
void expect_tree(const int others, Shape shape) {
  const std::vector<Place> all = places_of(others, shape);
  const std::vector<int> below = count_below(all);
  for (std::size_t place = 0; place < all.size(); ++place) {
    EXPECT_LT(all[place].parent, static_cast<int>(place));
    EXPECT_EQ(all[place].below, below[place]) << place << " of " << others;
  }
}

TEST(Trees, every_place_hangs_on_an_earlier_one_and_knows_how_many_hang_on_it) {
  for (int others = 0; others < 200; ++others) {
    expect_tree(others, &in_chain);
    expect_tree(others, &in_binomial);
  }
}

TEST(Trees, the_root_sends_once_in_a_chain_and_by_the_logarithm_in_a_binomial_tree) {
  for (int others = 1; others < 200; ++others) {
    EXPECT_EQ(children_of_root(places_of(others, &in_chain)), 1);
    EXPECT_EQ(children_of_root(places_of(others, &in_binomial)),
              std::bit_width(static_cast<unsigned>(others)));
  }
}

}  // namespace
}  // namespace imbrex::mpi::trees
