// SPDX-License-Identifier: BSD-3-Clause
#include "task/access/interval_tree.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace imbrex::task {
namespace {

// Methodology: random insertions, removals and searches, compared with a std::map that is read
// completely; intervals are short, long, equal, and share their beginnings.
TEST(IntervalTree, finds_what_a_search_of_all_intervals_finds) {
  std::mt19937 random(7);
  IntervalTree<int> tree;
  std::map<Interval, int> model;
  const auto draw = [&random] {
    const std::uintptr_t begin = random() % 60;
    return Interval{begin, begin + 1 + (random() % 4 == 0 ? random() % 60 : random() % 4)};
  };
  for (int step = 0; step < 20'000; ++step) {
    const Interval key = draw();
    switch (random() % 3) {
      case 0:
        tree.at(key) = step;
        model[key] = step;
        break;
      case 1:
        tree.erase(key);
        model.erase(key);
        break;
      default: {
        std::vector<int> found, expected;
        tree.each_overlapping(key, [&](const Interval&, int value) { found.push_back(value); });
        for (const auto& [other, value] : model) {
          if (other.overlaps(key)) expected.push_back(value);
        }
        ASSERT_EQ(found, expected) << "step " << step;
      }
    }
    ASSERT_EQ(tree.size(), model.size());
  }
}

TEST(IntervalTree, intervals_that_only_touch_do_not_overlap) {
  IntervalTree<int> tree;
  tree.at({10, 20}) = 1;
  int found = 0;
  const auto count = [&found](const Interval&, int) { ++found; };
  tree.each_overlapping({0, 10}, count);
  tree.each_overlapping({20, 30}, count);
  EXPECT_EQ(found, 0);
  tree.each_overlapping({19, 20}, count);
  EXPECT_EQ(found, 1);
}

TEST(IntervalTree, a_hundred_thousand_in_order_are_no_deep_tree) {
  IntervalTree<int> tree;
  for (std::uintptr_t i = 0; i < 100'000; ++i) tree.at({8 * i, 8 * i + 8}) = 1;
  int found = 0;
  tree.each([&found](const Interval&, int) { ++found; });
  EXPECT_EQ(found, 100'000);
  tree.clear();
  EXPECT_EQ(tree.size(), 0u);
}

}  // namespace
}  // namespace imbrex::task
