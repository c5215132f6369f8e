// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy/biased_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace imbrex::sched {
namespace {

// Methodology: all increment one plain counter inside the lock; a lost increment is an overlap.
void storm(const int others, const std::chrono::microseconds owner_stays_away) {
  BiasedLock lock;
  long count = 0;
  std::atomic<bool> done{false};
  std::atomic<long> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < others; ++i) {
    threads.emplace_back([&] {
      while (!done.load(std::memory_order_relaxed)) {
        if (lock.try_lock()) {
          ++count;
          lock.unlock();
          taken.fetch_add(1, std::memory_order_relaxed);
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  long entered = 0;
  while (std::chrono::steady_clock::now() < end || taken.load() < 3) {
    for (int i = 0; i < 1000; ++i) {
      lock.enter();
      ++count;
      lock.leave();
      lock.answer();
    }
    entered += 1000;
    if (owner_stays_away.count() != 0) std::this_thread::sleep_for(owner_stays_away);
  }
  done.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, entered + taken.load());
}

TEST(BiasedLock, excludes_the_owner_who_enters_all_the_time_from_one_other) { storm(1, {}); }
TEST(BiasedLock, excludes_many_from_each_other) { storm(4, {}); }
TEST(BiasedLock, lets_others_in_while_the_owner_is_away) {
  storm(2, std::chrono::microseconds(50));
}

TEST(BiasedLock, is_given_by_an_owner_who_only_answers) {
  BiasedLock lock;
  std::atomic<int> locked{0};
  std::thread other([&] {
    for (int i = 0; i < 100;) {
      if (!lock.try_lock()) continue;
      lock.unlock();
      locked.store(++i);
    }
  });
  while (locked.load() < 100) lock.answer();
  other.join();
}

TEST(BiasedLock, refuses_a_second_and_an_owner_who_stays_in) {
  BiasedLock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  lock.enter();
  EXPECT_FALSE(lock.try_lock());
  lock.leave();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

}  // namespace
}  // namespace imbrex::sched
