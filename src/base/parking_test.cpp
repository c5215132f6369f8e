// SPDX-License-Identifier: BSD-3-Clause
#include "base/parking.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace imbrex::base {
namespace {

TEST(Parking, sleep_returns_after_its_time_and_says_so) {
  Parking parking(1);
  parking.prepare(0);
  EXPECT_EQ(parking.asleep(), 1);
  EXPECT_FALSE(parking.sleep(0, 2000));
  EXPECT_EQ(parking.asleep(), 0);
}

TEST(Parking, a_wake_before_the_sleep_is_not_lost) {
  Parking parking(1);
  parking.prepare(0);
  EXPECT_TRUE(parking.wake_one());
  EXPECT_TRUE(parking.sleep(0, 0));
  EXPECT_FALSE(parking.wake_one());
}

TEST(Parking, cancel_leaves_nobody_asleep) {
  Parking parking(2);
  parking.prepare(1);
  parking.cancel(1);
  EXPECT_EQ(parking.asleep(), 0);
  EXPECT_FALSE(parking.wake_one());
}

// Methodology: a producer publishes numbers and wakes; the consumer sleeps without a time limit
// whenever it sees nothing new. A lost wake-up hangs the test.
TEST(Parking, no_wake_up_is_lost_between_a_look_and_the_sleep) {
  constexpr int count = 50'000;
  Parking parking(1);
  std::atomic<int> published{0};
  std::thread consumer([&] {
    int seen = 0;
    while (seen < count) {
      parking.prepare(0);
      const int now = published.load(std::memory_order_relaxed);
      if (now != seen) {
        parking.cancel(0);
        seen = now;
      } else {
        parking.sleep(0, 0);
      }
    }
  });
  for (int number = 1; number <= count; ++number) {
    published.store(number, std::memory_order_relaxed);
    parking.wake_one();
    if (number % 64 == 0) std::this_thread::yield();
  }
  consumer.join();
  EXPECT_EQ(parking.asleep(), 0);
}

TEST(Bell, rung_before_the_wait_is_heard_once) {
  Bell bell;
  EXPECT_FALSE(bell.was_rung());
  bell.ring();
  EXPECT_TRUE(bell.wait(0));
  EXPECT_FALSE(bell.was_rung());
  bell.ring();
  EXPECT_TRUE(bell.was_rung());
}

TEST(Bell, that_nobody_rings_is_waited_for_no_longer_than_said) {
  Bell bell;
  EXPECT_FALSE(bell.wait(2000));
  bell.ring();
  EXPECT_TRUE(bell.wait(2000));
}

// Methodology: two threads answer each other by their bells, with and without a limit that is often
// reached in the very moment of the ring. A lost ring hangs the test.
TEST(Bell, no_ring_is_lost) {
  constexpr int rounds = 20'000;
  Bell to;
  Bell back;
  std::thread thread([&] {
    for (int round = 0; round < rounds; ++round) {
      while (!to.wait(round % 2 == 0 ? 0 : 1)) {
      }
      back.ring();
    }
  });
  for (int round = 0; round < rounds; ++round) {
    to.ring();
    while (!back.wait(round % 3 == 0 ? 1 : 0)) {
    }
  }
  thread.join();
}

}  // namespace
}  // namespace imbrex::base
