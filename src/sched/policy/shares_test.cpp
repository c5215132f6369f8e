// SPDX-License-Identifier: BSD-3-Clause
// Which processors the ranks of a node get. Methodology: masks by hand, and drawn ones, for which a
// search over all divisions says how many processors the poorest rank can have.
#include "sched/policy/shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>

#include "base/topology.hpp"

namespace imbrex::sched {
namespace {

using Ints = std::vector<int>;
using Lists = std::vector<Ints>;
using Masks = std::vector<cpu_set_t>;

cpu_set_t mask_of(const Ints& processors) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int processor : processors) CPU_SET(processor, &mask);
  return mask;
}

void by_number(Ints& processors) { std::ranges::sort(processors); }

Lists divide(const Lists& masks) {
  Masks sets;
  for (const Ints& mask : masks) sets.push_back(mask_of(mask));
  return divide_processors(sets, &by_number);
}

TEST(SharesTest, equal_masks_get_neighbouring_processors) {
  EXPECT_EQ(divide({{0, 1, 2, 3}, {0, 1, 2, 3}}), (Lists{{0, 1}, {2, 3}}));
  EXPECT_EQ(divide({{0, 1, 2}, {0, 1, 2}}), (Lists{{0}, {1, 2}}));
}

TEST(SharesTest, disjoint_masks_keep_all_processors) {
  EXPECT_EQ(divide({{0, 1}, {2, 3, 4}}), (Lists{{0, 1}, {2, 3, 4}}));
  EXPECT_EQ(divide({{5}}), (Lists{{5}}));
}

TEST(SharesTest, a_nested_mask_leaves_the_rest_to_the_larger_one) {
  EXPECT_EQ(divide({{0, 1}, {0, 1, 2, 3}}), (Lists{{0, 1}, {2, 3}}));
  EXPECT_EQ(divide({{0, 1, 2, 3}, {3}}), (Lists{{0, 1, 2}, {3}}));
  EXPECT_EQ(divide({{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3}}),
            (Lists{{0, 1}, {4, 5}, {2, 3}}));
}

TEST(SharesTest, masks_that_overlap_partly_divide_what_both_have) {
  EXPECT_EQ(divide({{0, 1, 2, 3, 4, 5}, {2, 3, 4, 5, 6, 7}}),
            (Lists{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(divide({{0, 1}, {1, 2}, {2, 3}, {3, 0}}), (Lists{{1}, {2}, {3}, {0}}));
}

TEST(SharesTest, a_processor_comes_from_a_rank_that_gets_another_one) {
  // The second rank has what only it may use, so the first two processors are for the others.
  EXPECT_EQ(divide({{0}, {0, 1}, {1, 2}, {2, 3, 4}}), (Lists{{0}, {1}, {2}, {3, 4}}));
}

TEST(SharesTest, more_ranks_than_processors_share_them_evenly) {
  EXPECT_EQ(divide({{0, 1}, {0, 1}, {0, 1}}), (Lists{{0}, {1}, {0}}));
  EXPECT_EQ(divide({{0}, {1}, {0, 1}, {0, 1}}), (Lists{{0}, {1}, {0}, {1}}));
  EXPECT_EQ(divide({{0}, {0, 1}, {1}}), (Lists{{0}, {1}, {1}}));
}

TEST(SharesTest, a_rank_without_a_known_mask_gets_a_processor) {
  EXPECT_EQ(divide({{}, {}}), (Lists{{0}, {0}}));
}

TEST(SharesTest, neighbours_by_the_machine_stay_together) {
  const auto by_core = [](Ints& processors) {  // 0 and 4 are one core, as are 1 and 5, ...
    std::ranges::sort(processors, {}, [](const int it) { return it % 4 * 2 + it / 4; });
  };
  const Ints all{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(divide_processors({mask_of(all), mask_of(all)}, by_core),
            (Lists{{0, 4, 1, 5}, {2, 6, 3, 7}}));
  EXPECT_EQ(divide_processors({mask_of({0, 4, 1, 5, 2, 6}), mask_of({0, 4, 1, 5, 3, 7})}, by_core),
            (Lists{{0, 4, 2, 6}, {1, 5, 3, 7}}));
}

// Returns the most processors that the poorest rank can have if no two ranks get one processor.
int best_least(const Lists& masks, const int processors, const int next, Ints& counts) {
  if (next == processors) return std::ranges::min(counts);
  int best = best_least(masks, processors, next + 1, counts);
  for (std::size_t rank = 0; rank < masks.size(); ++rank) {
    if (std::ranges::find(masks[rank], next) == masks[rank].end()) continue;
    ++counts[rank];
    best = std::max(best, best_least(masks, processors, next + 1, counts));
    --counts[rank];
  }
  return best;
}

TEST(SharesTest, no_division_leaves_the_poorest_rank_more) {
  std::mt19937 random(42);
  for (int round = 0; round < 400; ++round) {
    const int processors = 1 + static_cast<int>(random() % 6);
    Lists masks(1 + random() % 4);
    for (Ints& mask : masks) {
      while (mask.empty()) {
        for (int processor = 0; processor < processors; ++processor) {
          if (random() % 2 == 0) mask.push_back(processor);
        }
      }
    }
    Ints counts(masks.size(), 0);
    const int best = best_least(masks, processors, 0, counts);
    const Lists shares = divide(masks);
    std::size_t least = shares[0].size();
    Ints given;
    for (std::size_t rank = 0; rank < masks.size(); ++rank) {
      ASSERT_FALSE(shares[rank].empty());
      EXPECT_TRUE(std::ranges::includes(masks[rank], shares[rank]));
      least = std::min(least, shares[rank].size());
      given.insert(given.end(), shares[rank].begin(), shares[rank].end());
    }
    std::ranges::sort(given);
    const bool shared = std::ranges::adjacent_find(given) != given.end();
    EXPECT_EQ(shared, best == 0) << "round " << round;
    if (!shared) {
      EXPECT_EQ(static_cast<int>(least), best) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace imbrex::sched
