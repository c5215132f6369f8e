// SPDX-License-Identifier: BSD-3-Clause
#include "base/sleep/bell.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace imbrex::base {
namespace {

TEST(Bell, rung_before_the_wait_is_heard_once) {
  Bell bell;
  EXPECT_FALSE(bell.was_rung());
  bell.ring();
  EXPECT_TRUE(bell.wait(0));
  EXPECT_FALSE(bell.was_rung());
  bell.ring();
  EXPECT_TRUE(bell.was_rung());
}

TEST(Bell, a_wait_without_a_ring_ends_at_its_limit) {
  Bell bell;
  EXPECT_FALSE(bell.wait(2'000'000));
  bell.ring();
  EXPECT_TRUE(bell.wait(2'000'000));
}

// Methodology: two threads answer each other by their bells, with and without a limit that is often
// reached in the very moment of the ring. A lost ring hangs the test.
TEST(Bell, no_ring_is_lost) {
  constexpr int rounds = 20'000;
  Bell to;
  Bell back;
  std::thread thread([&] {
    for (int round = 0; round < rounds; ++round) {
      while (!to.wait(round % 2 == 0 ? 0 : 1000)) {
      }
      back.ring();
    }
  });
  for (int round = 0; round < rounds; ++round) {
    to.ring();
    while (!back.wait(round % 3 == 0 ? 1000 : 0)) {
    }
  }
  thread.join();
}

// Methodology: threads leave errands and ring, several times before the owner hears it. An errand
// that the owner does not find hangs the test.
TEST(Bell, the_owner_finds_what_was_left_before_any_of_several_rings) {
  constexpr int rounds = 10'000;
  constexpr int ringers = 3;
  Bell bell;
  std::atomic<int> errands{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < ringers; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        errands.fetch_add(1, std::memory_order_relaxed);
        bell.ring();
      }
    });
  }
  for (int found = 0; found < rounds * ringers;) {
    (void)bell.was_rung();
    const int now = errands.exchange(0, std::memory_order_relaxed);
    found += now;
    if (now == 0) (void)bell.wait(0);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace imbrex::base
