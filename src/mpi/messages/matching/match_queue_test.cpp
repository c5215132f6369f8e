// SPDX-License-Identifier: BSD-3-Clause
// Methodology: random receives, messages and withdrawals on a few sources and tags, wildcards
// included, against a model that keeps everything in one list and walks it.
#include "mpi/messages/matching/match_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

namespace imbrex::mpi::messages {
namespace {

constexpr Wildcards any{-7, -9};

struct Waiting {
  int number;
  Envelope wanted;
  Link link;
};

bool matches(Envelope wanted, Envelope came) {
  return (wanted.source == any.source || wanted.source == came.source) &&
         (wanted.tag == any.tag || wanted.tag == came.tag);
}

TEST(ReceiveQueue, gives_a_message_to_the_oldest_receive_of_any_kind) {
  ReceiveQueue queue(any);
  Waiting both{0, {any.source, any.tag}, {}};
  Waiting exact{1, {3, 4}, {}};
  Waiting source{2, {3, any.tag}, {}};
  for (Waiting* one : {&exact, &both, &source}) queue.push(one->link, one->wanted, one);
  EXPECT_EQ(queue.find({3, 4}), &exact.link);
  EXPECT_EQ(queue.find({3, 5}), &both.link);
  queue.remove(both.link);
  EXPECT_EQ(queue.find({3, 5}), &source.link);
  EXPECT_EQ(queue.find({2, 5}), nullptr);
}

TEST(HeldMessages, are_found_oldest_first_by_every_wildcard) {
  HeldMessages<int> held(any);
  Held<int> first{{}, 1};
  Held<int> second{{}, 2};
  held.push(first, {0, 5});
  held.push(second, {1, 5});
  EXPECT_EQ(held.find({any.source, any.tag}), &first);
  EXPECT_EQ(held.find({1, any.tag}), &second);
  EXPECT_EQ(held.find({any.source, 5}), &first);
  held.remove(first);
  EXPECT_EQ(held.find({any.source, 5}), &second);
  EXPECT_EQ(held.find({0, 5}), nullptr);
  EXPECT_EQ(held.size(), 1u);
}

class MatchQueueModel : public testing::TestWithParam<unsigned> {
 protected:
  MatchQueueModel() : random_(GetParam()) {}

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  Envelope wanted() {
    return {below(4) == 0 ? any.source : below(3), below(4) == 0 ? any.tag : below(spread_)};
  }

  void add_receive() {
    auto one = std::make_unique<Waiting>(Waiting{++count_, wanted(), {}});
    queue_.push(one->link, one->wanted, one.get());
    receives_.push_back(std::move(one));
  }
  void deliver() {
    const Envelope came{below(3), below(spread_)};
    const auto expected = std::find_if(receives_.begin(), receives_.end(), [&](const auto& one) {
      return matches(one->wanted, came);
    });
    Link* const found = queue_.find(came);
    if (expected == receives_.end()) {
      ASSERT_EQ(found, nullptr);
      return;
    }
    ASSERT_EQ(found, &(*expected)->link);
    queue_.remove(*found);
    receives_.erase(expected);
  }
  void withdraw() {
    if (receives_.empty()) return;
    const auto one = receives_.begin() + below(static_cast<int>(receives_.size()));
    queue_.remove((*one)->link);
    receives_.erase(one);
  }

  struct Came {
    Envelope envelope;
    Held<int> held;
  };
  void hold() {
    messages_.push_back(std::make_unique<Came>(Came{{below(3), below(spread_)}, {}}));
    held_.push(messages_.back()->held, messages_.back()->envelope);
  }
  void take() {
    const Envelope asked = wanted();
    const auto expected = std::find_if(messages_.begin(), messages_.end(), [&](const auto& one) {
      return matches(asked, one->envelope);
    });
    Held<int>* const found = held_.find(asked);
    ASSERT_EQ(found, expected == messages_.end() ? nullptr : &(*expected)->held);
    if (found == nullptr) return;
    held_.remove(*found);
    messages_.erase(expected);
  }

  std::mt19937 random_;
  int count_ = 0;
  int spread_ = 3;
  ReceiveQueue queue_{any};
  HeldMessages<int> held_{any};
  std::deque<std::unique_ptr<Waiting>> receives_;
  std::deque<std::unique_ptr<Came>> messages_;
};

TEST_P(MatchQueueModel, receives_are_matched_as_in_the_model) {
  spread_ = 1 + below(200);
  const int bias = 1 + below(9);
  for (int step = 0; step < 3000 && !HasFatalFailure(); ++step) {
    const int what = below(10);
    if (what <= bias) {
      add_receive();
    } else if (what < 9) {
      deliver();
    } else {
      withdraw();
    }
    ASSERT_EQ(queue_.size(), receives_.size());
  }
}

TEST_P(MatchQueueModel, messages_are_taken_as_in_the_model) {
  spread_ = 1 + below(200);
  const int bias = 1 + below(9);
  for (int step = 0; step < 3000 && !HasFatalFailure(); ++step) {
    if (below(10) <= bias) {
      hold();
    } else {
      take();
    }
    ASSERT_EQ(held_.size(), messages_.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, MatchQueueModel, testing::Range(1u, 41u));

}  // namespace
}  // namespace imbrex::mpi::messages
