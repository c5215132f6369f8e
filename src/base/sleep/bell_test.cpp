// SPDX-License-Identifier: BSD-3-Clause
#include "base/sleep/bell.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace imbrex::base {
namespace {

TEST(Bell, a_notification_before_the_wait_is_consumed_once) {
  Bell bell;
  EXPECT_FALSE(bell.was_notified());
  bell.notify();
  EXPECT_TRUE(bell.wait(0));
  EXPECT_FALSE(bell.was_notified());
  bell.notify();
  EXPECT_TRUE(bell.was_notified());
}

TEST(Bell, a_wait_without_a_notification_ends_at_its_limit) {
  Bell bell;
  EXPECT_FALSE(bell.wait(2'000'000));
  bell.notify();
  EXPECT_TRUE(bell.wait(2'000'000));
}

// Methodology: two threads answer each other by their bells, with and without a limit that is often
// reached in the very moment of the notification. A lost one hangs the test.
TEST(Bell, no_notification_is_lost) {
  constexpr int rounds = 20'000;
  Bell to;
  Bell back;
  std::thread thread([&] {
    for (int round = 0; round < rounds; ++round) {
      while (!to.wait(round % 2 == 0 ? 0 : 1000)) {
      }
      back.notify();
    }
  });
  for (int round = 0; round < rounds; ++round) {
    to.notify();
    while (!back.wait(round % 3 == 0 ? 1000 : 0)) {
    }
  }
  thread.join();
}

// Methodology: threads leave errands and notify, several times before the owner looks. An errand
// that the owner does not find hangs the test.
TEST(Bell, the_owner_finds_what_was_left_before_any_of_several_notifications) {
  constexpr int rounds = 10'000;
  constexpr int notifiers = 3;
  Bell bell;
  std::atomic<int> errands{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < notifiers; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        errands.fetch_add(1, std::memory_order_relaxed);
        bell.notify();
      }
    });
  }
  for (int found = 0; found < rounds * notifiers;) {
    (void)bell.was_notified();
    const int now = errands.exchange(0, std::memory_order_relaxed);
    found += now;
    if (now == 0) (void)bell.wait(0);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace imbrex::base
