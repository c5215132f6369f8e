// SPDX-License-Identifier: BSD-3-Clause
#include "base/sleep/parking.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace imbrex::base {
namespace {

TEST(Parking, sleep_returns_after_its_time_and_says_so) {
  Parking parking(1);
  parking.open(0);
  parking.prepare(0);
  EXPECT_EQ(parking.asleep(), 1);
  EXPECT_FALSE(parking.sleep(0, 2000));
  EXPECT_EQ(parking.asleep(), 0);
}

TEST(Parking, a_wake_before_the_sleep_is_not_lost) {
  Parking parking(1);
  parking.open(0);
  parking.prepare(0);
  EXPECT_TRUE(parking.wake_one());
  EXPECT_TRUE(parking.sleep(0, 0));
  EXPECT_FALSE(parking.wake_one());
}

TEST(Parking, cancel_leaves_nobody_asleep) {
  Parking parking(2);
  parking.open(0);
  parking.open(1);
  parking.prepare(1);
  parking.cancel(1);
  EXPECT_EQ(parking.asleep(), 0);
  EXPECT_FALSE(parking.wake_one());
}

// Methodology: a producer publishes numbers and wakes; the consumer sleeps without a time limit
// whenever it sees nothing new. A lost wake-up hangs the test.
void publish_and_sleep(Parking& parking, const int count = 50'000) {
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

TEST(Parking, no_wake_up_is_lost_between_a_look_and_the_sleep) {
  Parking parking(1);
  parking.open(0);
  publish_and_sleep(parking);
}

TEST(Parking, no_wake_up_is_lost_in_a_crowd) {
  Parking parking(1);
  parking.open(0);
  parking.expect_crowd();
  EXPECT_TRUE(parking.may_be_asleep());
  EXPECT_FALSE(parking.some_asleep());
  publish_and_sleep(parking);
}

TEST(Parking, no_wake_up_is_lost_while_a_crowd_begins) {
  for (int round = 0; round < 20; ++round) {
    Parking parking(1);
    parking.open(0);
    std::thread other([&parking] { parking.expect_crowd(); });
    publish_and_sleep(parking, 10'000);
    other.join();
  }
}

TEST(Parking, a_cluster_is_woken_at_once_and_only_those_who_were_meant) {
  constexpr int threads = 40;  // more than a cluster
  Parking parking(threads);
  for (int place = 0; place < threads; ++place) parking.open(place);
  std::atomic<int> woken{0};
  std::vector<std::thread> sleepers;
  for (int place = 0; place < threads; ++place) {
    sleepers.emplace_back([&parking, &woken, place] {
      parking.prepare(place);
      EXPECT_TRUE(parking.sleep(place, 0));
      woken.fetch_add(1);
    });
  }
  while (parking.asleep() != threads) std::this_thread::yield();
  parking.wake_cluster(0, 0b1011);
  parking.wake_cluster(1, 0x80);
  while (woken.load() != 4) std::this_thread::yield();
  EXPECT_EQ(parking.asleep(), threads - 4);
  EXPECT_FALSE(parking.wake(0));
  EXPECT_FALSE(parking.wake(39));
  EXPECT_TRUE(parking.wake(2));
  parking.wake_all();
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(woken.load(), threads);
}

}  // namespace
}  // namespace imbrex::base
