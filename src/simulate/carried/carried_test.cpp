// SPDX-License-Identifier: BSD-3-Clause
// Broadcasts and work pools: the library's protocols in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "imbrex/error.hpp"
#include "simulate/carried/broadcast.hpp"
#include "simulate/carried/pool.hpp"
#include "uts/tree.hpp"

namespace imbrex::simulate {
namespace {

using distributed::TreeKind;

ClusterSetup cluster(const int ranks) {
  ClusterSetup setup;
  setup.ranks = ranks;
  setup.network.latency_ns = 40'000;
  setup.network.overhead_ns = 1'000;
  setup.network.ns_per_byte = 80;  // 100 Mbit/s
  setup.network.copy_ns_per_byte = 0.2;
  setup.network.eager_bytes = 65536;
  return setup;
}

// ---- broadcasts ------------------------------------------------------------------------------

struct Case {
  TreeKind tree;
  double copies;  // that follow each other on one link
};

TEST(Broadcast, a_tree_takes_the_copies_that_its_busiest_link_sends) {
  constexpr std::int64_t bytes = 4 << 20;
  constexpr int ranks = 8;
  const double copy = 80.0 * bytes;
  const double segments = 80.0 * (60 << 10) * (ranks - 2);
  for (const Case& one : {Case{TreeKind::star, 7}, Case{TreeKind::chain, 1}}) {
    BroadcastSetup setup;
    setup.bytes = bytes;
    setup.tree = one.tree;
    const Outcome outcome = simulate_broadcast(setup, cluster(ranks));
    const double expected = one.copies * copy + (one.tree == TreeKind::chain ? segments : 0);
    EXPECT_GE(static_cast<double>(outcome.time_ns), one.copies * copy);
    EXPECT_LE(static_cast<double>(outcome.time_ns), expected * 1.15);
    EXPECT_GE(outcome.bytes, bytes * (ranks - 1));
    EXPECT_LE(outcome.bytes, bytes * (ranks - 1) * 1.02) << "messages of the protocol";
    EXPECT_EQ(outcome.bytes, outcome.bytes_received);
    EXPECT_EQ(outcome.messages, outcome.messages_received);
  }
}

TEST(Broadcast, trees_differ_as_the_number_of_copies_of_the_root_does) {
  std::vector<Time> times;
  for (const TreeKind tree :
       {TreeKind::chain, TreeKind::binary, TreeKind::binomial, TreeKind::star}) {
    BroadcastSetup setup;
    setup.bytes = 8 << 20;
    setup.tree = tree;
    times.push_back(simulate_broadcast(setup, cluster(16)).time_ns);
  }
  EXPECT_TRUE(std::ranges::is_sorted(times));
  BroadcastSetup setup;
  setup.bytes = 8 << 20;
  const Time best = simulate_broadcast(setup, cluster(16)).time_ns;
  EXPECT_LE(static_cast<double>(best), 1.01 * static_cast<double>(times[0]));
}

TEST(Broadcast, rounds_follow_each_other_and_one_rank_takes_no_time) {
  BroadcastSetup setup;
  setup.bytes = 100'000;
  const Time once = simulate_broadcast(setup, cluster(4)).time_ns;
  setup.rounds = 3;
  EXPECT_EQ(simulate_broadcast(setup, cluster(4)).time_ns, 3 * once);
  EXPECT_EQ(simulate_broadcast(setup, cluster(1)).time_ns, 0);
}

// ---- work pools ------------------------------------------------------------------------------

[[nodiscard]] std::int64_t nodes_of(const std::string& name) {
  for (const uts::KnownTree& tree : uts::known_trees()) {
    if (tree.name == name) return static_cast<std::int64_t>(tree.counts.nodes);
  }
  return -1;
}

ClusterSetup pool_cluster(const int ranks, const int workers) {
  ClusterSetup setup = cluster(ranks);
  setup.rank.workers = workers;
  setup.network.latency_ns = 1000;
  setup.network.ns_per_byte = 0.1;
  return setup;
}

TEST(Pool, all_nodes_of_the_tree_are_searched_once_on_any_number_of_ranks) {
  for (const auto& [ranks, workers] : {std::pair{1, 1}, {1, 4}, {7, 1}, {16, 3}}) {
    PoolSetup setup;
    setup.tree = "T1";
    setup.node_ns = 500;
    const Outcome outcome = simulate_pool(setup, pool_cluster(ranks, workers));
    EXPECT_EQ(outcome.sums.tasks, nodes_of("T1"));
    EXPECT_NEAR(static_cast<double>(outcome.sums.in_task_ns),
                500.0 * static_cast<double>(nodes_of("T1") - 1),
                static_cast<double>(outcome.events));
    EXPECT_EQ(outcome.messages, outcome.messages_received);
    EXPECT_EQ(outcome.bytes, outcome.bytes_received);
    EXPECT_EQ(ranks == 1, outcome.messages == 0);
    // Efficient: a slice of 100 us is short beside all of it.
    const double least = 500.0 * static_cast<double>(nodes_of("T1")) / ranks / workers;
    EXPECT_GE(static_cast<double>(outcome.time_ns), least * 0.999);
    EXPECT_LE(static_cast<double>(outcome.time_ns), least * 1.3 + 5e6);
  }
}

TEST(Pool, ranks_that_lend_search_all_nodes_once_and_borrow) {
  for (const int per_node : {2, 4}) {
    PoolSetup setup;
    setup.tree = "T1";
    setup.node_ns = 500;
    ClusterSetup cluster = pool_cluster(7, 2);
    cluster.per_node = per_node;
    const Outcome alone = simulate_pool(setup, cluster);
    EXPECT_EQ(alone.sums.borrowed_ns, 0);
    cluster.lends = true;
    const Outcome outcome = simulate_pool(setup, cluster);
    EXPECT_EQ(outcome.sums.tasks, nodes_of("T1"));
    EXPECT_EQ(outcome.messages, outcome.messages_received);
    EXPECT_GT(outcome.sums.borrowed_ns, 0);
    // No more workers run at once than there are processors, and items still move between ranks.
    const double least = 500.0 * static_cast<double>(nodes_of("T1")) / 14;
    EXPECT_GE(static_cast<double>(outcome.time_ns), least * 0.999);
    EXPECT_LE(static_cast<double>(outcome.time_ns), static_cast<double>(alone.time_ns) * 1.2);
  }
}

TEST(Pool, two_simulations_are_the_same) {
  PoolSetup setup;
  setup.tree = "T1";
  setup.node_ns = 500;
  const Outcome one = simulate_pool(setup, pool_cluster(9, 2));
  const Outcome other = simulate_pool(setup, pool_cluster(9, 2));
  EXPECT_EQ(one.time_ns, other.time_ns);
  EXPECT_EQ(one.events, other.events);
}

TEST(Pool, a_tree_that_nobody_knows_is_refused) {
  PoolSetup setup;
  setup.tree = "T17";
  EXPECT_THROW((void)simulate_pool(setup, pool_cluster(2, 1)), Error);
}

}  // namespace
}  // namespace imbrex::simulate
