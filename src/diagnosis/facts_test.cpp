// SPDX-License-Identifier: BSD-3-Clause
#include "diagnosis/facts.hpp"

#include <gtest/gtest.h>

#include <random>

namespace imbrex::diagnosis {
namespace {

RankFacts full() {
  RankFacts facts{.rank = 3, .ranks = 9, .host = "node\t7", .process = 4711,
                  .state = RankState::finalizes, .still_ms = 30'000, .may_continue = false,
                  .has_left_out = true, .running = {"\"a\" (a.cpp:1)", ""},
                  .failures = {"task \"load\" has failed: no\nsuch \\n file"}};
  const Communicator halo{.name = "ha\\lo", .id = 12, .members = {4, 5, 6, 2, 0},
                          .is_named = false};
  facts.waits.push_back({.task = 5, .task_text = "\"b\"", .kind = WaitKind::receive,
                         .call = "MPI_Recv", .comm = halo, .peer = any, .peer_in_comm = any,
                         .tag = 7, .bytes = 64});
  facts.waits.push_back({.task = 1, .task_text = "\"main\"", .kind = WaitKind::finish,
                         .call = "finish (a.cpp:3)", .tasks = {5, 6, 9}});
  facts.waits.push_back({.kind = WaitKind::future, .call = "future", .peer = 2,
                         .object = "future 7 of space \"x\""});
  facts.messages.push_back({.comm = halo, .source = 2, .source_in_comm = 3, .tag = 8, .bytes = 0});
  facts.locks.push_back({.task = 5, .task_text = "\"b\"", .window = halo, .target = any,
                         .is_exclusive = true});
  return facts;
}

TEST(Facts, read_returns_what_write_was_given) {
  EXPECT_EQ(read(write(full())), full());
  EXPECT_EQ(read(write(RankFacts{})), RankFacts{});
}

TEST(Facts, each_kind_of_wait_keeps_its_kind) {
  RankFacts facts;
  for (int kind = 0; kind <= static_cast<int>(WaitKind::other); ++kind) {
    facts.waits.push_back({.kind = static_cast<WaitKind>(kind), .call = "x"});
  }
  EXPECT_EQ(read(write(facts)), facts);
}

TEST(Facts, a_text_that_is_none_is_refused) {
  EXPECT_EQ(read(""), std::nullopt);
  EXPECT_EQ(read("hello\nrank\t0\t1\n"), std::nullopt);
  EXPECT_EQ(read("imbrex facts 2\n"), std::nullopt);
  EXPECT_EQ(read("imbrex facts 2\nrank\t7\t2\n"), std::nullopt);
}

TEST(Facts, unknown_lines_and_missing_fields_are_no_error) {
  const auto facts = read("imbrex facts 2\nrank\t1\t2\nweather\tfine\nwait\t3\n");
  ASSERT_TRUE(facts.has_value());
  ASSERT_EQ(facts->waits.size(), 1u);
  EXPECT_EQ(facts->waits[0].task, 3u);
  EXPECT_EQ(facts->waits[0].tag, none);
}

// Methodology: changes some bytes of a right text at random, many times; read() must return.
TEST(Facts, garbage_does_no_harm) {
  std::mt19937 draw(7);
  const std::string good = write(full());
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (int change = 0; change < 5; ++change) {
      const std::size_t place = draw() % text.size();
      switch (draw() % 3) {
        case 0: text[place] = static_cast<char>(draw()); break;
        case 1: text.erase(place, draw() % 9); break;
        default: text.insert(place, std::string("9-\t\n\\,").substr(draw() % 6, 1)); break;
      }
      if (text.empty()) break;
    }
    const auto facts = read(text);
    if (facts) {
      EXPECT_EQ(read(write(*facts)), facts);
    }
  }
}

}  // namespace
}  // namespace imbrex::diagnosis
