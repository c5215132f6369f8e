// SPDX-License-Identifier: BSD-3-Clause
#include "task/event_word.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "task/descriptor.hpp"

namespace imbrex::task {
namespace {

// A waiter that counts how often it was released.
struct Counting : Waiter {
  Counting() {
    notify = [](Waiter& waiter, Outcome&) noexcept -> Waiter* {
      static_cast<Counting&>(waiter).calls.fetch_add(1);
      return nullptr;
    };
  }
  std::atomic<int> calls{0};
};

TEST(Event, fire_lets_go_each_waiter_once_and_later_ones_do_not_wait) {
  EventWord word;
  Outcome outcome;
  Counting waiters[3];
  for (Counting& waiter : waiters) EXPECT_TRUE(event::add(word, waiter));
  EXPECT_FALSE(word.has_fired());
  event::fire(word, outcome);
  EXPECT_TRUE(word.has_fired());
  for (Counting& waiter : waiters) EXPECT_EQ(waiter.calls, 1);
  Counting late;
  EXPECT_FALSE(event::add(word, late));
  Waiter* none = nullptr;
  EXPECT_FALSE(event::try_fire(word, none));
  EXPECT_EQ(late.calls, 0);
}

TEST(Event, a_waiter_that_was_taken_back_is_not_let_go) {
  EventWord word;
  Outcome outcome;
  Counting waiters[3];
  for (Counting& waiter : waiters) ASSERT_TRUE(event::add(word, waiter));
  EXPECT_TRUE(event::remove(word, waiters[1]));
  EXPECT_FALSE(event::remove(word, waiters[1]));
  event::fire(word, outcome);
  EXPECT_EQ(waiters[0].calls, 1);
  EXPECT_EQ(waiters[1].calls, 0);
  EXPECT_EQ(waiters[2].calls, 1);
  EXPECT_FALSE(event::remove(word, waiters[0]));
}

TEST(Event, waiters_by_address_are_taken_out_and_the_others_stay) {
  EventWord word;
  Outcome outcome;
  Counting waiters[4];
  for (Counting& waiter : waiters) ASSERT_TRUE(event::add(word, waiter));
  for (const int index : {0, 3}) waiters[index].follows.store(64, std::memory_order_relaxed);
  EXPECT_FALSE(event::was_swept(word));
  Waiter* const taken = event::take_by_address(word);
  EXPECT_TRUE(event::was_swept(word));
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken, &waiters[0]);
  EXPECT_EQ(taken->next, &waiters[3]);
  EXPECT_EQ(waiters[3].next, nullptr);
  event::fire(word, outcome);
  EXPECT_EQ(waiters[0].calls, 0);
  EXPECT_EQ(waiters[1].calls, 1);
  EXPECT_EQ(waiters[2].calls, 1);
  EXPECT_EQ(waiters[3].calls, 0);
}

// Methodology: in each round some threads add and take back waiters while another thread fires. At
// the end every waiter was released once, taken back, or refused: exactly one of the three.
TEST(Event, add_remove_and_fire_may_race) {
  constexpr int rounds = 2000;
  constexpr int threads = 3;
  for (int round = 0; round < rounds; ++round) {
    EventWord word;
    Counting waiters[threads][8];
    std::atomic<int> ends{0};
    std::vector<std::thread> adders;
    for (int thread = 0; thread < threads; ++thread) {
      adders.emplace_back([&, thread] {
        for (int index = 0; index < 8; ++index) {
          Counting& waiter = waiters[thread][index];
          if (!event::add(word, waiter)) {
            ends.fetch_add(1);
          } else if (index % 2 == 0 && event::remove(word, waiter)) {
            ends.fetch_add(1);
          }
        }
      });
    }
    Outcome outcome;
    event::fire(word, outcome);
    for (std::thread& adder : adders) adder.join();
    int let_go = 0;
    for (auto& row : waiters) {
      for (Counting& waiter : row) {
        ASSERT_LE(waiter.calls, 1);
        let_go += waiter.calls;
      }
    }
    ASSERT_EQ(let_go + ends, threads * 8);
    if (round == 200 && IMBREX_TSAN) break;
  }
}

}  // namespace
}  // namespace imbrex::task
