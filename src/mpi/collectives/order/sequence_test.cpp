// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/order/sequence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace imbrex::mpi::order {
namespace {

using Keys = std::vector<std::uint64_t>;

TEST(Sequence, a_start_waits_until_the_one_before_it_is_over) {
  Sequence sequence(true);
  std::array<Start, 3> starts{{{7}, {5}, {7}}};
  EXPECT_TRUE(sequence.enter(starts[0]));
  EXPECT_FALSE(sequence.enter(starts[1]));
  EXPECT_FALSE(sequence.enter(starts[2]));
  EXPECT_EQ(sequence.leave(), &starts[1]);
  EXPECT_EQ(sequence.leave(), &starts[2]);
  EXPECT_EQ(sequence.leave(), nullptr);
  Keys keys(2);
  EXPECT_EQ(sequence.take_decisions(keys), 2U);
  EXPECT_EQ(keys, (Keys{7, 5}));
  EXPECT_EQ(sequence.take_decisions(keys), 1U);
  EXPECT_EQ(keys[0], 7U);
  EXPECT_FALSE(sequence.lacks_decisions());
}

TEST(Sequence, elsewhere_it_waits_for_the_decision_and_for_what_is_decided_before_it) {
  Sequence sequence(false);
  Start b{2};
  Start a{1};
  EXPECT_FALSE(sequence.enter(b));
  EXPECT_TRUE(sequence.lacks_decisions());
  EXPECT_EQ(sequence.learn(Keys{1, 2}), nullptr);
  EXPECT_FALSE(sequence.lacks_decisions());
  std::size_t waiting = 0;
  sequence.for_each_waiting([&](const Sequence::View& it) {
    ++waiting;
    EXPECT_EQ(it.start, &b);
    EXPECT_TRUE(it.is_decided);
    EXPECT_EQ(it.ahead, 1U);
    EXPECT_EQ(it.first_key, 1U);
    EXPECT_FALSE(it.first_is_here);
    EXPECT_EQ(it.decided, 2U);
    EXPECT_EQ(it.last_key, 2U);
  });
  EXPECT_EQ(waiting, 1U);
  EXPECT_TRUE(sequence.enter(a));
  EXPECT_EQ(sequence.leave(), &b);
  EXPECT_EQ(sequence.leave(), nullptr);
}

TEST(Sequence, given_up_it_lets_all_go_and_asks_no_one_to_leave) {
  Sequence sequence(false);
  std::array<Start, 4> starts{{{1}, {2}, {3}, {4}}};
  EXPECT_EQ(sequence.learn(Keys{1, 2}), nullptr);
  EXPECT_TRUE(sequence.enter(starts[0]));
  EXPECT_FALSE(sequence.enter(starts[1]));
  EXPECT_FALSE(sequence.enter(starts[2]));
  const std::vector<Start*> waiting = sequence.give_up();
  EXPECT_EQ(waiting.size(), 2U);
  EXPECT_EQ(std::ranges::count(waiting, &starts[0]), 0);  // it goes on already
  EXPECT_EQ(sequence.leave(), nullptr);
  EXPECT_TRUE(sequence.enter(starts[3]));
  EXPECT_EQ(sequence.leave(), nullptr);
  EXPECT_EQ(sequence.learn(Keys{9}), nullptr);
}

// Methodology: ranks whose tasks come in orders of their own, and messages that take their time,
// one random step after the other. Whatever the steps are, all ranks start all, in one order, each
// when the one before it is over.
class Ranks {
 public:
  Ranks(const std::uint32_t seed, const std::size_t ranks) : random_(seed) {
    const std::size_t keys = 1 + random_() % 5;
    Keys all(1 + random_() % 30);
    for (std::uint64_t& key : all) key = random_() % keys;
    for (std::size_t i = 0; i < ranks; ++i) {
      Rank& rank = ranks_.emplace_back(i == 0);
      rank.pending = all;
      std::ranges::shuffle(rank.pending, random_);
    }
  }

  // False: nothing can happen any more.
  bool step() {
    for (int tries = 0; tries < 400; ++tries) {
      Rank& rank = ranks_[random_() % ranks_.size()];
      const auto what = random_() % 3;
      if (what == 0 && !rank.pending.empty()) {
        Start& start = rank.starts.emplace_back(rank.pending.back());
        rank.pending.pop_back();
        if (rank.sequence.enter(start)) begin(rank, start);
        send_decisions();
        return true;
      }
      if (what == 1 && rank.starting != nullptr) {
        rank.starting = nullptr;
        if (Start* const next = rank.sequence.leave()) begin(rank, *next);
        return true;
      }
      if (what == 2 && !rank.messages.empty()) {
        const std::size_t count = 1 + random_() % rank.messages.size();
        const Keys keys(rank.messages.begin(),
                        rank.messages.begin() + static_cast<std::ptrdiff_t>(count));
        rank.messages.erase(rank.messages.begin(),
                            rank.messages.begin() + static_cast<std::ptrdiff_t>(count));
        if (Start* const next = rank.sequence.learn(keys)) begin(rank, *next);
        return true;
      }
    }
    return false;
  }

  void expect_one_order() const {
    for (const Rank& rank : ranks_) {
      EXPECT_TRUE(rank.pending.empty());
      EXPECT_EQ(rank.begun, ranks_[0].begun);
      EXPECT_EQ(rank.begun.size(), rank.starts.size());
    }
  }

 private:
  struct Rank {
    explicit Rank(const bool decides) : sequence(decides) {}
    Sequence sequence;
    Keys pending;
    std::deque<Start> starts;
    std::deque<std::uint64_t> messages;
    Start* starting = nullptr;
    Keys begun;
  };
  static void begin(Rank& rank, Start& start) {
    EXPECT_EQ(rank.starting, nullptr) << "two at a time";
    rank.starting = &start;
    rank.begun.push_back(start.key);
  }
  void send_decisions() {
    Keys keys(3);
    while (const std::size_t count = ranks_[0].sequence.take_decisions(keys)) {
      for (std::size_t i = 1; i < ranks_.size(); ++i) {
        ranks_[i].messages.insert(ranks_[i].messages.end(), keys.begin(),
                                  keys.begin() + static_cast<std::ptrdiff_t>(count));
      }
    }
  }

  std::mt19937 random_;
  std::deque<Rank> ranks_;
};

TEST(Sequence, all_ranks_start_all_in_one_order_whatever_comes_first) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Ranks ranks(seed, 1 + seed % 4);
    while (ranks.step()) {
    }
    ranks.expect_one_order();
  }
}

// Methodology: a thread for each task of each rank; whoever has something to do for another rank
// does it, as the engine would. ThreadSanitizer looks on.
TEST(Sequence, threads_start_all_in_one_order) {
  constexpr std::size_t ranks = 3;
  constexpr std::uint64_t tasks = 4;
  constexpr int rounds = 50;
  struct Waiting : Start {
    std::atomic<bool> is_turn{false};
  };
  struct Rank {
    explicit Rank(const bool decides) : sequence(decides) {}
    Sequence sequence;
    Keys begun;  // by whose turn it is: unguarded, as what MPI's start touches
  };
  std::deque<Rank> all;
  for (std::size_t i = 0; i < ranks; ++i) all.emplace_back(i == 0);
  std::mutex sender;
  const auto wake = [](Start* const start) {
    if (start != nullptr) static_cast<Waiting*>(start)->is_turn.store(true);
  };
  const auto send_decisions = [&] {
    const std::lock_guard guard(sender);
    Keys keys(2);
    while (const std::size_t count = all[0].sequence.take_decisions(keys)) {
      for (std::size_t i = 1; i < ranks; ++i) {
        wake(all[i].sequence.learn(std::span(keys).first(count)));
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks; ++i) {
    for (std::uint64_t key = 0; key < tasks; ++key) {
      threads.emplace_back([&, i, key] {
        Rank& rank = all[i];
        for (int round = 0; round < rounds; ++round) {
          Waiting start;
          start.key = key / 2;  // two tasks share a key
          const bool is_turn = rank.sequence.enter(start);
          if (i == 0) send_decisions();
          while (!is_turn && !start.is_turn.load()) std::this_thread::yield();
          rank.begun.push_back(start.key);
          wake(rank.sequence.leave());
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const Rank& rank : all) {
    EXPECT_EQ(rank.begun.size(), static_cast<std::size_t>(rounds) * tasks);
    EXPECT_EQ(rank.begun, all[0].begun);
  }
}

}  // namespace
}  // namespace imbrex::mpi::order
