// SPDX-License-Identifier: BSD-3-Clause
// Work pools of several ranks in one process, each rank with some workers. Messages and waves go by
// two networks, so that on a rank what a wave does meets what a message does, too.
#include "distributed/pool/pools.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "core/on_runtime.hpp"
#include "distributed/network.hpp"
#include "imbrex/distributed/emit.hpp"

namespace imbrex::test {
namespace {

// A random tree: what a node is decides what its children are.
struct Node {
  std::uint64_t state;
  int depth;
};
[[nodiscard]] std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}
struct Tree {
  std::uint64_t seed;
  int depth_max;

  [[nodiscard]] Node root(const int number) const {
    return {mix(seed * 1000 + static_cast<std::uint64_t>(number)), 0};
  }
  [[nodiscard]] int children(const Node& node) const {
    if (node.depth == 0) return 8;
    return node.depth < depth_max ? static_cast<int>(node.state % 5) : 0;  // two on average
  }
  [[nodiscard]] static Node child(const Node& node, const int i) {
    return {mix(node.state + static_cast<std::uint64_t>(i) + 1), node.depth + 1};
  }
  [[nodiscard]] std::uint64_t count(const Node& node) const {
    std::uint64_t nodes = 1;
    for (int i = 0; i < children(node); ++i) nodes += count(child(node, i));
    return nodes;
  }
};

struct Rank {
  distributed::Waves waves;
  distributed::Pools pools;
  Rank(distributed::Carrier& for_waves, distributed::Carrier& for_pools)
      : waves(for_waves), pools(for_pools) {}
};

// Ranks without their pools, which come and go.
struct Ranks {
  std::vector<std::unique_ptr<Rank>> ranks;
  std::array<std::atomic<int>, 8> kept_requests{};  // that a rank has, until it has items
  std::array<std::array<std::atomic<bool>, 8>, 8> last_requested{};  // [by][whom]: not answered yet
  Network wave_network;
  Network pool_network;

  Ranks(const int count, const unsigned seed)
      : wave_network(count, seed, 1), pool_network(count, seed, 2) {
    for (int i = 0; i < count; ++i) {
      Rank& rank = *ranks.emplace_back(
          std::make_unique<Rank>(wave_network.carrier(i), pool_network.carrier(i)));
      wave_network.set_handler(i, [&rank](const int from, const distributed::Bytes message) {
        rank.waves.receive(from, message);
      });
      pool_network.set_handler(i, [this, i, &rank](const int from,
                                                   const distributed::Bytes message) {
        distributed::PoolHead head;
        std::memcpy(&head, message.data(), sizeof head);
        const auto here = static_cast<std::size_t>(i), other = static_cast<std::size_t>(from);
        if (head.lifeline) last_requested[other][here] = true;
        rank.pools.receive(from, message);
        const bool brings_none = head.kind == distributed::PoolMessage::none;
        if (!brings_none && !head.last) return;
        // The answer: a request that brings nothing is kept.
        if (last_requested[here][other].exchange(false) && brings_none) ++kept_requests[other];
      });
    }
  }
};

// The part of WorkPool<Item> that knows no MPI.
template <class Item>
class PoolOf {
 public:
  PoolOf(Rank& rank, const distributed::Pool::Options& options)
      : rank_(rank), pool_(rank.pools.carrier(), rank.waves, options) {
    rank_.pools.add(pool_);
  }
  ~PoolOf() { rank_.pools.remove(pool_); }
  PoolOf(const PoolOf&) = delete;
  PoolOf& operator=(const PoolOf&) = delete;

  void push(const Item& item) { pool_.push(&item); }
  template <class F>
  [[nodiscard]] WorkPoolCounters process(F&& f) {
    using Function = std::remove_reference_t<F>;
    void* const function = const_cast<void*>(static_cast<const void*>(&f));
    return pool_.process({&detail::run_items<Item, Function>, function,
                          std::source_location::current()});
  }

 private:
  Rank& rank_;
  distributed::Pool pool_;
};

class PoolTest : public OnRuntime {
 protected:
  [[nodiscard]] distributed::Pool::Options options(const int ranks, const std::size_t item_bytes,
                                                   const std::uint64_t id = 1) const {
    distributed::Pool::Options made;
    made.id = id;
    made.item_bytes = item_bytes;
    for (int rank = 0; rank < ranks; ++rank) made.ranks.push_back(rank);
    made.name = "test";
    made.workers = GetParam().workers;
    return made;
  }

  // Calls f(rank, its number) as a task for each.
  template <class F>
  static void on_each(Ranks& ranks, F&& f) {
    finish([&] {
      for (std::size_t i = 0; i < ranks.ranks.size(); ++i) {
        task("rank").launch([&, i] { f(*ranks.ranks[i], static_cast<int>(i)); });
      }
    });
  }

  static std::uint64_t nodes_of(const Tree& tree, const int roots) {
    std::uint64_t nodes = 0;
    for (int i = 0; i < roots; ++i) nodes += tree.count(tree.root(i));
    return nodes;
  }
};
INSTANTIATE_TEST_SUITE_P(All, PoolTest, testing::ValuesIn(every_policy({1, 2, 8})), name_of);

TEST_P(PoolTest, every_item_of_a_random_tree_is_worked_on_once) {
  constexpr int roots = 3;
  for (int size = 1; size <= 8; ++size) {
    Ranks ranks(size, static_cast<unsigned>(size));
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::uint64_t> received{0};
    std::vector<std::atomic<std::uint64_t>> visited(3);
    on_each(ranks, [&](Rank& rank, const int number) {
      distributed::Pool::Options made = options(size, sizeof(Node));
      if (size % 2 == 0) made.interval = 3;  // looks up, and gives, all the time
      PoolOf<Node> pool(rank, made);
      for (std::uint64_t round = 0; round < visited.size(); ++round) {
        const Tree tree{round + 1, sanitized ? 5 : 8};
        if (number == size - 1) {
          for (int i = 0; i < roots; ++i) pool.push(tree.root(i));
        }
        const WorkPoolCounters counters =
            pool.process([&](const Node& node, Emit<Node>& emit) {
              ++visited[round];
              const int children = tree.children(node);
              Node* const made_here = emit.append(static_cast<std::size_t>(children));
              for (int i = 0; i < children; ++i) made_here[i] = Tree::child(node, i);
            });
        sent += counters.items_sent;
        received += counters.items_received;
        std::uint64_t by_workers = 0;
        for (const WorkPoolTally& one : counters.workers) by_workers += one.items;
        EXPECT_EQ(by_workers, counters.items);
        // All workers have ended: no worker visits a node any more.
        EXPECT_EQ(visited[round], nodes_of(tree, roots)) << size << " ranks, round " << round;
      }
    });
    EXPECT_EQ(sent, received);
    for (const auto& rank : ranks.ranks) EXPECT_EQ(rank->waves.open(), 0u);
  }
}

TEST_P(PoolTest, items_that_are_taken_count_and_those_dropped_do_not) {
  constexpr int size = 3;
  const Tree tree{5, sanitized ? 5 : 8};
  for (const std::uint32_t interval : {0u, 1u, 3u}) {  // an item at a time, and several
    Ranks ranks(size, interval);
    std::atomic<std::uint64_t> visited{0};
    std::atomic<std::uint64_t> counted{0};
    on_each(ranks, [&](Rank& rank, const int number) {
      distributed::Pool::Options made = options(size, sizeof(Node));
      made.interval = interval;
      PoolOf<Node> pool(rank, made);
      if (number == 0) pool.push(tree.root(0));
      const WorkPoolCounters counters =
          pool.process([&](const Node& node, Emit<Node>& emit) {
            Node nodes[4] = {node};
            const std::size_t count = 1 + emit.take(nodes + 1, 3);
            EXPECT_TRUE(interval == 0 || count <= interval);
            visited += count;
            int children = 0;
            for (std::size_t i = 0; i < count; ++i) children += tree.children(nodes[i]);
            Node* const first = emit.append(static_cast<std::size_t>(children) + 5);
            Node* end = first;
            for (std::size_t i = 0; i < count; ++i) {
              const int mine = tree.children(nodes[i]);
              for (int child = 0; child < mine; ++child) *end++ = Tree::child(nodes[i], child);
            }
            emit.drop_from(end);
          });
      counted += counters.items;
    });
    EXPECT_EQ(visited, nodes_of(tree, 1));
    EXPECT_EQ(counted, visited);
  }
}

TEST_P(PoolTest, ranks_that_have_ceased_to_ask_are_sent_items) {
  constexpr int size = 4;
  Ranks ranks(size, 7);
  std::atomic<std::uint64_t> pushes{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<int> visited{0};
  on_each(ranks, [&](Rank& rank, const int number) {
    PoolOf<int> pool(rank, options(size, sizeof(int)));
    if (number == 0) pool.push(1000);
    const WorkPoolCounters counters = pool.process([&](const int item, Emit<int>& emit) {
      ++visited;
      // The first item holds all work back until others have given up.
      const auto here = static_cast<std::size_t>(number);
      while (item == 1000 && ranks.kept_requests[here] == 0) yield();
      if (item > 1) emit(item / 2);
      if (item > 1) emit(item - item / 2);
    });
    pushes += counters.lifeline_pushes;
    failed += counters.failed_steals;
  });
  EXPECT_EQ(visited, 1999);
  EXPECT_GE(pushes, 1u);
  EXPECT_GE(failed, 1u);
}

TEST_P(PoolTest, two_pools_run_at_once) {
  constexpr int size = 3;
  Ranks ranks(size, 11);
  const Tree tree{5, 5};
  std::vector<std::atomic<std::uint64_t>> visited(2);
  on_each(ranks, [&](Rank& rank, const int number) {
    finish([&] {
      for (std::size_t which = 0; which < 2; ++which) {
        task("pool").launch([&, number, which] {
          PoolOf<Node> pool(rank, options(size, sizeof(Node), which));
          if (number == static_cast<int>(which)) pool.push(tree.root(0));
          (void)pool.process([&](const Node& node, Emit<Node>& emit) {
            ++visited[which];
            for (int i = 0; i < tree.children(node); ++i) emit(Tree::child(node, i));
          });
        });
      }
    });
  });
  EXPECT_EQ(visited[0], nodes_of(tree, 1));
  EXPECT_EQ(visited[1], nodes_of(tree, 1));
}

TEST_P(PoolTest, an_exception_ends_the_round_on_all_ranks) {
  for (int size = 1; size <= 5; ++size) {
    Ranks ranks(size, static_cast<unsigned>(size) + 20);
    std::atomic<int> here{0};
    std::atomic<int> elsewhere{0};
    std::atomic<int> visited{0};
    on_each(ranks, [&](Rank& rank, const int number) {
      PoolOf<int> pool(rank, options(size, sizeof(int)));
      pool.push(number);
      try {
        (void)pool.process([&](const int item, Emit<int>& emit) {
          if (item == 40) throw std::runtime_error("forty");
          emit(item + 1);  // without end
          emit(item + 1);
        });
      } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("\"test\""), text.npos) << text;
        EXPECT_NE(text.find("rank "), text.npos) << text;
        EXPECT_NE(text.find("forty"), text.npos) << text;
        ++elsewhere;
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "forty");
        ++here;
      }
      // The pool is as new.
      pool.push(1);
      (void)pool.process([&](const int, Emit<int>&) { ++visited; });
    });
    EXPECT_GE(here, 1);
    EXPECT_EQ(here + elsewhere, size);
    EXPECT_EQ(visited, size);
  }
}

// A rank that has ended one such round may fail in the next one while others are in the first.
TEST_P(PoolTest, rounds_that_fail_one_after_the_other_throw_on_all_ranks) {
  constexpr int size = 4;
  constexpr int rounds = 20;
  Ranks ranks(size, 30);
  std::atomic<int> thrown{0};
  on_each(ranks, [&](Rank& rank, const int number) {
    PoolOf<int> pool(rank, options(size, sizeof(int)));
    for (int round = 0; round < rounds; ++round) {
      if (round % size == number) pool.push(round);
      try {
        (void)pool.process([&](const int, Emit<int>&) { throw std::runtime_error("at once"); });
      } catch (const std::exception&) {
        ++thrown;
      }
    }
  });
  EXPECT_EQ(thrown, size * rounds);
}

TEST_P(PoolTest, items_may_fill_a_message_and_the_function_may_wait) {
  struct Big {
    std::array<std::byte, detail::item_bytes_max - 8> bytes;
    std::uint64_t left;
  };
  static_assert(sizeof(Big) == detail::item_bytes_max);
  constexpr int size = 3;
  Ranks ranks(size, 30);
  std::atomic<int> visited{0};
  std::atomic<int> wrong{0};
  on_each(ranks, [&](Rank& rank, const int number) {
    PoolOf<Big> pool(rank, options(size, sizeof(Big)));
    if (number == 1) pool.push({{std::byte{100}}, 100});
    (void)pool.process([&](const Big& item, Emit<Big>& emit) {
      ++visited;
      wrong += item.bytes[0] == static_cast<std::byte>(item.left) ? 0 : 1;
      yield();
      for (const std::uint64_t half : {item.left / 2, item.left - item.left / 2}) {
        if (item.left > 1) emit({{static_cast<std::byte>(half)}, half});
      }
    });
  });
  EXPECT_EQ(visited, 199);
  EXPECT_EQ(wrong, 0);
}

TEST_P(PoolTest, misuse_is_refused) {
  Ranks ranks(1, 40);
  Rank& rank = *ranks.ranks[0];
  PoolOf<int> pool(rank, options(1, sizeof(int)));
  pool.push(3);
  EXPECT_EQ(pool.process([&](const int, Emit<int>&) {
    EXPECT_THROW(pool.push(1), Error);
    EXPECT_THROW((void)pool.process([](const int, Emit<int>&) {}), Error);
  }).items, 1u);
  EXPECT_EQ(pool.process([](const int, Emit<int>&) {}).items, 0u);
}

}  // namespace
}  // namespace imbrex::test
