// SPDX-License-Identifier: BSD-3-Clause
// Which processors workers get on machines that hwloc makes up.
#include "base/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace imbrex::base {
namespace {

using Ints = std::vector<int>;

// The first `count` processors after spread(), of a machine of which the process may use all.
Ints first_of(const char* const machine, const int processors, const std::size_t count) {
  EXPECT_EQ(setenv("HWLOC_SYNTHETIC", machine, 1), 0);
  Topology topology;
  Ints all(static_cast<std::size_t>(processors));
  std::iota(all.begin(), all.end(), 0);
  topology.spread(all, count);
  EXPECT_EQ(unsetenv("HWLOC_SYNTHETIC"), 0);
  Ints sorted = all;
  std::ranges::sort(sorted);
  for (int processor = 0; processor < processors; ++processor) {
    EXPECT_EQ(sorted[static_cast<std::size_t>(processor)], processor);
  }
  all.resize(count);
  return all;
}

TEST(TopologyTest, workers_as_many_as_cores_get_a_core_each) {
  EXPECT_EQ(first_of("pack:1 core:4 pu:2", 8, 4), (Ints{0, 2, 4, 6}));
  EXPECT_EQ(first_of("pack:2 core:2 pu:4", 16, 4), (Ints{0, 4, 8, 12}));
}

TEST(TopologyTest, fewer_workers_than_cores_get_neighbouring_cores) {
  EXPECT_EQ(first_of("pack:1 core:4 pu:2", 8, 2), (Ints{0, 2}));
}

TEST(TopologyTest, more_workers_than_cores_share_the_first_cores) {
  EXPECT_EQ(first_of("pack:1 core:4 pu:2", 8, 6), (Ints{0, 1, 2, 3, 4, 6}));
}

TEST(TopologyTest, spread_changes_nothing_where_each_core_is_one_processor) {
  EXPECT_EQ(first_of("pack:2 core:2 pu:1", 4, 3), (Ints{0, 1, 2}));
}

TEST(TopologyTest, spread_changes_nothing_for_as_many_workers_as_processors) {
  EXPECT_EQ(first_of("pack:1 core:2 pu:2", 4, 4), (Ints{0, 1, 2, 3}));
}

}  // namespace
}  // namespace imbrex::base
