// SPDX-License-Identifier: BSD-3-Clause
// Tests of stencil2d, run on 1, 2 and 4 ranks. Methodology: every rank runs the same tests in the
// same order; a field in blocks, wherever they are and however they move, has the bits of the field
// that two arrays and plain loops make.
#include <gtest/gtest.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "balance.hpp"
#include "run.hpp"

namespace stencil2d {
namespace {

int rank_count() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

TEST(curve, visits_every_block_once_and_in_a_power_of_two_goes_to_neighbours_only) {
  for (const int blocks : {1, 2, 3, 4, 7, 8, 16}) {
    const std::vector<int> order = curve(blocks);
    std::vector<int> sorted = order;
    std::ranges::sort(sorted);
    ASSERT_EQ(sorted.size(), static_cast<std::size_t>(blocks * blocks));
    for (int block = 0; block < blocks * blocks; ++block) {
      EXPECT_EQ(sorted[static_cast<std::size_t>(block)], block);
    }
    if ((blocks & (blocks - 1)) != 0) continue;
    for (std::size_t i = 1; i < order.size(); ++i) {
      const int rows = std::abs(order[i] / blocks - order[i - 1] / blocks);
      const int columns = std::abs(order[i] % blocks - order[i - 1] % blocks);
      EXPECT_EQ(rows + columns, 1) << blocks << ", place " << i;
    }
  }
}

// The least of all cuts, by trying them.
std::int64_t least_most(const std::vector<int>& order, const std::vector<std::int64_t>& weights,
                        std::size_t first, int ranks) {
  std::int64_t rest = 0;
  for (std::size_t i = first; i < order.size(); ++i) {
    rest += weights[static_cast<std::size_t>(order[i])];
  }
  if (ranks == 1) return rest;
  std::int64_t best = rest;
  std::int64_t sum = 0;
  for (std::size_t i = first; i < order.size(); ++i) {
    sum += weights[static_cast<std::size_t>(order[i])];
    best = std::min(best, std::max(sum, least_most(order, weights, i + 1, ranks - 1)));
  }
  return best;
}

TEST(distribution, has_the_least_largest_sum_of_all_cuts) {
  std::mt19937 random(1);
  const std::vector<int> order = curve(4);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<std::int64_t> weights(16);
    for (std::int64_t& weight : weights) weight = random() % 20;
    for (const int ranks : {1, 2, 3, 5}) {
      const std::vector<int> owners = distribute(order, weights, ranks);
      std::vector<std::int64_t> sums(static_cast<std::size_t>(ranks), 0);
      for (std::size_t b = 0; b < 16; ++b) {
        ASSERT_LT(owners[b], ranks);
        sums[static_cast<std::size_t>(owners[b])] += weights[b];
      }
      EXPECT_EQ(*std::ranges::max_element(sums), least_most(order, weights, 0, ranks));
    }
  }
}

TEST(distribution, zero_weights_and_one_block_have_imbalance_one) {
  const std::vector<int> owners = distribute(curve(4), std::vector<std::int64_t>(16, 0), 4);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(std::ranges::count(owners, rank), 4);
  EXPECT_EQ(imbalance(owners, std::vector<std::int64_t>(16, 0), 4), 1);
  EXPECT_EQ(imbalance(owners, std::vector<std::int64_t>(16, 7), 4), 1);
  EXPECT_EQ(distribute(curve(1), {5}, 8), std::vector<int>{0});
  EXPECT_EQ(imbalance({0}, {5}, 8), 8);
}

constexpr Problem small{.blocks = 6, .side = 5, .steps = 25, .rounds = 2, .hot = 20, .radius = 0.3,
                        .turns = 1};

constexpr Variant all_variants[] = {Variant::fixed, Variant::moving, Variant::tasks,
                                    Variant::iterate};

TEST(all_variants, have_the_bits_of_the_field_that_plain_loops_make) {
  const tiled::Team team({1, rank_count()});
  Problem problems[] = {small, small, small, small};
  problems[1].blocks = 1;
  problems[2].side = 1;
  problems[3].steps = 1;
  for (const Problem& problem : problems) {
    const std::vector<double> expected = compute_serially(problem);
    for (const Variant variant : all_variants) {
      for (const int every : {1, 4, 100}) {
        SCOPED_TRACE(testing::Message() << "variant " << static_cast<int>(variant) << ", every "
                                        << every);
        const Outcome outcome = run(team, problem, {}, {every, variant}, expected);
        EXPECT_TRUE(outcome.right);
        EXPECT_EQ(outcome.periods.size(),
                  static_cast<std::size_t>((problem.steps + every - 1) / every));
        if (variant == Variant::moving) continue;
        for (const Period& period : outcome.periods) EXPECT_EQ(period.moved, 0);
      }
    }
  }
}

TEST(a_wrong_field, is_noticed) {
  const tiled::Team team({1, rank_count()});
  std::vector<double> expected = compute_serially(small);
  expected.back() += 1e-15;
  for (const Variant variant : all_variants) {
    EXPECT_FALSE(run(team, small, {}, {.variant = variant}, expected).right);
  }
}

// One rank is slower than the others, so blocks leave it. A sleep counts as the time that it stands
// for, so nothing here depends on the machine.
TEST(moving_blocks, take_the_imbalance_away) {
  const tiled::Team team({1, rank_count()});
  Problem problem = small;
  problem.hot = 1;
  const Kernels kernels(tiled::KernelTimes{team.rank() == 0 ? 4e-4 : 1e-4});
  const Outcome fixed = run(team, problem, kernels, {5, Variant::fixed}, {});
  const Outcome moving = run(team, problem, kernels, {5, Variant::moving}, {});
  int moved = 0;
  for (const Period& period : moving.periods) moved += period.moved;
  EXPECT_EQ(moved > 0, team.size() > 1);
  EXPECT_TRUE(team.size() == 1 || moving.imbalance < fixed.imbalance);
}

}  // namespace
}  // namespace stencil2d
