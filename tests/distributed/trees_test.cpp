// SPDX-License-Identifier: BSD-3-Clause
// Methodology: a tree is walked as its ranks would, each knowing its own list only.
#include "distributed/data/trees.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace imbrex::test {
namespace {

using distributed::Branch;
using distributed::Nodes;
using distributed::Recipient;
using distributed::Stop;
using distributed::TreeKind;

constexpr TreeKind kinds[] = {TreeKind::star, TreeKind::binomial, TreeKind::chain,
                              TreeKind::binary};

struct Edge {
  int from;
  int to;
  int round;  // in which it is sent, if each rank sends once in a round, from the one after its own
};

std::vector<Edge> walk(const TreeKind kind, const int root, const std::vector<Stop>& list) {
  std::vector<Edge> edges;
  const std::function<void(int, int, const std::vector<Stop>&)> visit =
      [&](const int rank, const int has_it_in, const std::vector<Stop>& rest) {
        int round = has_it_in;
        for (const Branch& one : distributed::branches(kind, rest)) {
          edges.push_back({rank, static_cast<int>(one.to.rank), ++round});
          visit(static_cast<int>(one.to.rank), round, one.rest);
        }
      };
  visit(root, 0, list);
  return edges;
}

std::size_t sent_by(const std::vector<Edge>& edges, const int rank) {
  std::size_t count = 0;
  for (const Edge& edge : edges) count += edge.from == rank ? 1U : 0U;
  return count;
}

std::vector<Recipient> all_but(const int root, const int ranks) {
  std::vector<Recipient> to;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank != root) to.push_back({rank, static_cast<std::uint32_t>(rank) + 7U, 0});
  }
  return to;
}

std::size_t log2_up(const std::size_t n) {
  return static_cast<std::size_t>(std::bit_width(n - 1));
}

TEST(Trees, any_list_is_reached_once_with_its_tickets_and_each_node_over_the_network_once) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 40);
    const int root = static_cast<int>(random() % static_cast<unsigned>(ranks));
    std::vector<int> node_of_rank(random() % 4 == 0 ? 0U : static_cast<std::size_t>(ranks));
    for (int& node : node_of_rank) node = static_cast<int>(random() % 6) * 10 - 20;
    std::vector<Recipient> to = all_but(root, ranks);
    std::shuffle(to.begin(), to.end(), random);
    to.resize(1 + random() % to.size());
    for (Recipient& one : to) {
      one.priority = static_cast<std::int32_t>(random() % 3) * (random() % 9 == 0 ? INT32_MIN / 4
                                                                                  : 1);
      one.urgency = random() % 2 == 0 ? 0 : static_cast<std::int32_t>(random() % 1'300'000'000);
    }
    const Nodes nodes(node_of_rank);
    const std::vector<Stop> list = distributed::arrange(root, to, nodes);
    ASSERT_EQ(list.size(), to.size());
    for (const Stop& stop : list) EXPECT_EQ(stop.ticket, stop.rank + 7);
    for (const TreeKind kind : kinds) {
      const std::vector<Edge> edges = walk(kind, root, list);
      std::set<int> reached;
      std::map<int, int> crossings;
      for (const Edge& edge : edges) {
        EXPECT_TRUE(reached.insert(edge.to).second);
        EXPECT_TRUE(edge.from == root || reached.contains(edge.from)) << "sent before it has come";
        const int from = nodes.number_of(edge.from);
        const int node = nodes.number_of(edge.to);
        if (from != node) ++crossings[node];
      }
      EXPECT_EQ(reached.size(), to.size());
      if (kind != TreeKind::star) {
        EXPECT_EQ(crossings.count(nodes.number_of(root)), 0U);
        for (const auto& [node, times] : crossings) EXPECT_EQ(times, 1) << name_of(kind);
      }
      const std::size_t most = kind == TreeKind::star     ? to.size()
                               : kind == TreeKind::chain  ? 1
                               : kind == TreeKind::binary ? 2
                                                          : log2_up(to.size() + 1);
      EXPECT_LE(sent_by(edges, root), most) << name_of(kind) << " to " << to.size();
      if (kind == TreeKind::chain || kind == TreeKind::binary) {
        for (const Recipient& one : to) EXPECT_LE(sent_by(edges, one.rank), most);
      }
    }
  }
}

TEST(Trees, a_binomial_tree_ends_after_log2_rounds_and_serves_higher_priorities_first) {
  for (int ranks = 2; ranks <= 70; ++ranks) {
    std::vector<Recipient> to = all_but(0, ranks);
    for (Recipient& one : to) one.priority = -one.rank;
    std::map<int, int> round_of;
    for (const Edge& edge : walk(TreeKind::binomial, 0, distributed::arrange(0, to, Nodes()))) {
      round_of[edge.to] = edge.round;
    }
    for (int rank = 1; rank < ranks; ++rank) {
      EXPECT_EQ(round_of[rank], std::bit_width(static_cast<unsigned>(rank))) << ranks << " ranks";
    }
  }
}

TEST(Trees, a_chain_goes_by_priority_then_by_urgency_and_then_round_from_the_root) {
  const std::vector<Recipient> to{{0, 0, 1, 0}, {1, 0, 1, 0}, {3, 0, 1, 0}, {4, 0, 2, 0},
                                  {5, 0, 1, 7}};
  std::vector<int> order;
  for (const Stop& stop : distributed::arrange(2, to, Nodes())) {
    order.push_back(static_cast<int>(stop.rank));
  }
  EXPECT_EQ(order, (std::vector<int>{4, 5, 3, 0, 1}));
}

TEST(Trees, over_all_roots_every_rank_passes_on_as_much) {
  for (const int ranks_of_node : {1, 4}) {
    constexpr int ranks = 16;
    std::vector<int> node_of_rank;
    for (int rank = 0; rank < ranks; ++rank) node_of_rank.push_back(rank / ranks_of_node);
    const Nodes nodes(node_of_rank);
    for (const TreeKind kind : kinds) {
      std::vector<std::size_t> sends(ranks);
      for (int root = 0; root < ranks; ++root) {
        const std::vector<Stop> list = distributed::arrange(root, all_but(root, ranks), nodes);
        for (const Edge& edge : walk(kind, root, list)) {
          ++sends[static_cast<std::size_t>(edge.from)];
        }
      }
      for (const std::size_t one : sends) EXPECT_EQ(one, ranks - 1U) << name_of(kind);
    }
  }
}

TEST(Trees, the_kind_follows_from_size_and_number) {
  using distributed::choose;
  EXPECT_EQ(choose(TreeKind::automatic, 7, 1), TreeKind::binomial);
  EXPECT_EQ(choose(TreeKind::automatic, 3, 2), TreeKind::chain);
  EXPECT_EQ(choose(TreeKind::automatic, 7, 2), TreeKind::binomial);
  EXPECT_EQ(choose(TreeKind::automatic, 3, 16), TreeKind::chain);
  EXPECT_EQ(choose(TreeKind::automatic, 7, 16), TreeKind::chain);
  EXPECT_EQ(choose(TreeKind::automatic, 99, 16), TreeKind::binary);
  EXPECT_EQ(choose(TreeKind::automatic, 99, 2), TreeKind::binomial);
  EXPECT_EQ(choose(TreeKind::star, 99, 2), TreeKind::star);
}

}  // namespace
}  // namespace imbrex::test
