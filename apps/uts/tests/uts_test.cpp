// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "expand.hpp"
#include "search.hpp"

namespace uts {
namespace {

std::vector<Hash> hashes() {
  std::vector<Hash> all{Hash::plain};
  if (has_instructions()) all.push_back(Hash::instructions);
  return all;
}

std::array<std::uint32_t, 5> sha1_of(const std::string& text) {
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  const State state = sha1(bytes);
  return {state.word(0), state.word(1), state.word(2), state.word(3), state.word(4)};
}

using Words = std::array<std::uint32_t, 5>;

TEST(Sha1, gives_the_digests_of_the_standard) {
  EXPECT_EQ(sha1_of(""), (Words{0xda39a3ee, 0x5e6b4b0d, 0x3255bfef, 0x95601890, 0xafd80709}));
  EXPECT_EQ(sha1_of("abc"), (Words{0xa9993e36, 0x4706816a, 0xba3e2571, 0x7850c26c, 0x9cd0d89d}));
  EXPECT_EQ(sha1_of(std::string(55, 'a')),
            (Words{0xc1c8bbdc, 0x22796e28, 0xc0e15163, 0xd20899b6, 0x5621d65a}));
}

TEST(Sha1, a_child_has_the_hash_of_its_message) {
  State parent = root_state(42);
  for (const std::uint32_t child : {0U, 1U, 255U, 256U, 0x01020304U, 0xffffffffU}) {
    std::vector<std::uint8_t> message;
    const auto put = [&](std::uint32_t word) {
      for (int shift = 24; shift >= 0; shift -= 8) message.push_back((word >> shift) & 0xff);
    };
    for (int i = 0; i < 5; ++i) put(parent.word(i));
    put(child);
    const State state = child_state(parent, child);
    EXPECT_EQ(state, sha1(message));
    parent = state;
  }
}

TEST(Expansion, every_hash_expands_any_families_alike) {
  std::mt19937 random(3);
  for (const KnownTree& known : known_trees().first(5)) {
    const Tree tree(known.parameters);
    for (int round = 0; round < 50; ++round) {
      std::vector<Node> parents(random() % 40);
      std::vector<Node> expected;
      for (Node& parent : parents) {
        parent = {root_state(static_cast<std::int32_t>(random() >> 1)),
                  static_cast<std::uint32_t>(random() % 20),
                  static_cast<std::uint32_t>(1 + random() % 11)};
        for (std::uint32_t child = 0; child < parent.children; ++child) {
          const State state = child_state(parent.state, child);
          const std::uint32_t children = tree.children_by_formula(state.value(), parent.depth + 1);
          if (children > 0) expected.push_back({state, parent.depth + 1, children});
        }
      }
      for (const Hash hash : hashes()) {
        std::vector<Node> out(children_of(parents) + 1);
        const Node* const end = expand_with(hash)(tree, parents, out.data());
        ASSERT_EQ(end - out.data(), static_cast<std::ptrdiff_t>(expected.size()));
        for (std::size_t i = 0; i < expected.size(); ++i) {
          EXPECT_EQ(out[i].state, expected[i].state);
          EXPECT_EQ(out[i].depth, expected[i].depth);
          EXPECT_EQ(out[i].children, expected[i].children);
        }
      }
    }
  }
}

// Around every threshold of every depth, at both ends, and at random.
void expect_thresholds_to_agree(const Parameters& parameters, std::uint32_t depths) {
  const Tree tree(parameters);
  std::mt19937 random(5);
  const auto look_at = [&](std::uint32_t value, std::uint32_t depth) {
    ASSERT_EQ(tree.children(value, depth), tree.children_by_formula(value, depth))
        << "value " << value << " depth " << depth;
  };
  constexpr std::int64_t last = (std::int64_t{1} << 31) - 1;
  for (std::uint32_t depth = 0; depth < depths; ++depth) {
    const bool root = depth == 0;
    if (root && parameters.type == Type::binomial) continue;
    const Rule* const rule = tree.rule(depth);
    ASSERT_NE(rule, nullptr);
    std::vector<std::int64_t> values{0, last};
    for (const std::uint32_t threshold : rule->thresholds()) {
      if (threshold == Rule::never) continue;
      values.push_back(threshold);
      values.push_back(last - threshold);  // where small numbers have children
    }
    for (int i = 0; i < 20; ++i) values.push_back(random() & last);
    for (const std::int64_t value : values) {
      for (std::int64_t near = value - 100; near <= value + 100; ++near) {
        if (near >= 0 && near <= last) look_at(static_cast<std::uint32_t>(near), depth);
      }
    }
  }
}

TEST(Rules, agree_with_the_logarithms_at_all_thresholds_of_the_known_trees) {
  for (const KnownTree& known : known_trees()) {
    expect_thresholds_to_agree(known.parameters, 83);
  }
}

TEST(Rules, agree_with_the_logarithms_for_every_type_and_shape) {
  for (const Type type : {Type::binomial, Type::geometric, Type::hybrid, Type::balanced}) {
    for (const Shape shape : {Shape::linear, Shape::expdec, Shape::cyclic, Shape::fixed}) {
      Parameters parameters;
      parameters.type = type;
      parameters.shape = shape;
      parameters.depth = 7;
      parameters.root_children = 2.7;
      parameters.hybrid_shift = 0.4;
      expect_thresholds_to_agree(parameters, 40);
    }
  }
  Parameters many;
  many.root_children = 1e7;  // a hundred children at most
  expect_thresholds_to_agree(many, 8);
  Parameters certain;
  certain.type = Type::binomial;
  certain.binomial_q = 0;
  expect_thresholds_to_agree(certain, 3);
}

TEST(Rules, end_where_there_are_too_many_depths_for_a_table) {
  Parameters parameters;
  parameters.shape = Shape::expdec;
  const Tree tree(parameters);
  ASSERT_EQ(tree.rule(5000), nullptr);
  EXPECT_EQ(tree.children(12345, 5000), tree.children_by_formula(12345, 5000));
}

TEST(Trees, have_their_known_counts) {
  for (const KnownTree& known : known_trees().first(5)) {
    for (const Hash hash : hashes()) {
      apps::Progress progress(0, "nodes", 0);
      Settings settings;
      settings.hash = hash;
      settings.interval = 1 << 20;
      const Tree tree(known.parameters);
      Search search(tree, settings, progress);
      Stack stack;
      search.begin(stack);
      search.run(stack, UINT64_MAX);
      EXPECT_EQ(search.counts(), known.counts) << known.name;
      EXPECT_EQ(find_known(known.parameters), &known);
    }
  }
}

TEST(Trees, balanced_trees_have_powers_of_nodes) {
  Parameters parameters;
  parameters.type = Type::balanced;
  parameters.depth = 5;
  parameters.root_children = 3;
  apps::Progress progress(0, "nodes", 0);
  const Tree tree(parameters);
  Search search(tree, {}, progress);
  Stack stack;
  search.begin(stack);
  while (!stack.empty()) search.run(stack, 1);
  EXPECT_EQ(search.counts(), (Counts{364, 243, 5}));
}

TEST(Trees, with_a_root_alone_are_one_leaf) {
  Parameters parameters;
  parameters.type = Type::binomial;
  parameters.root_children = 0.5;
  apps::Progress progress(0, "nodes", 0);
  const Tree tree(parameters);
  Search search(tree, {}, progress);
  const Node root = root_of(tree);
  EXPECT_EQ(root.children, 0U);
  search.count_root(root);
  EXPECT_EQ(search.counts(), (Counts{1, 1, 0}));
}

TEST(Trees, endless_and_senseless_trees_are_refused) {
  const auto refused = [](auto&& change) {
    Parameters parameters;
    change(parameters);
    EXPECT_THROW(check(parameters), InputError);
  };
  refused([](Parameters& p) { p.type = Type::binomial; p.binomial_q = 0.5; });
  refused([](Parameters& p) { p.binomial_q = std::nan(""); });
  refused([](Parameters& p) { p.binomial_m = 101; });
  refused([](Parameters& p) { p.depth = 0; });
  refused([](Parameters& p) { p.root_children = 0; });
  refused([](Parameters& p) { p.root_children = INFINITY; });
  refused([](Parameters& p) { p.shape = Shape::expdec; p.depth = 1; });
  refused([](Parameters& p) { p.granularity = 0; });
  refused([](Parameters& p) { p.hybrid_shift = -1; });
  check(Parameters());
  for (const KnownTree& known : known_trees()) check(known.parameters);
}

TEST(Stack, gives_the_oldest_and_pops_the_youngest_as_a_vector_does) {
  std::mt19937 random(11);
  Stack stack;
  std::vector<std::uint32_t> model;
  std::uint32_t next = 1;
  for (int step = 0; step < 20000; ++step) {
    const std::size_t count = random() % 700;
    switch (random() % 3) {
      case 0: {
        Node* node = stack.room(count);
        for (std::size_t i = 0; i < count; ++i) {
          *node++ = {{}, next, 1};
          model.push_back(next++);
        }
        stack.grow(node);
        break;
      }
      case 1: {
        std::vector<Node> out(std::min(count, stack.size()));
        stack.pop(out);
        for (std::size_t i = 0; i < out.size(); ++i) {
          ASSERT_EQ(out[i].depth, model[model.size() - out.size() + i]);
        }
        model.resize(model.size() - out.size());
        break;
      }
      default: {
        std::vector<Node> out;
        stack.give(std::min(count, stack.size()), out);
        for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i].depth, model[i]);
        model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(out.size()));
      }
    }
    ASSERT_EQ(stack.size(), model.size());
    ASSERT_EQ(stack.empty(), model.empty());
  }
}

}  // namespace
}  // namespace uts
