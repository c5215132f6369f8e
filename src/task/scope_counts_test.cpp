// SPDX-License-Identifier: BSD-3-Clause
#include "task/scope_counts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace imbrex::task {
namespace {

constexpr std::uint64_t one = Scope::one_complete | Scope::one_deep;

// A scope in which that many tasks have been spawned and are complete.
struct OldScope : Scope {
  explicit OldScope(const std::uint64_t tasks) noexcept {
    spawned = tasks * one;
    finished.store(tasks * one);
  }
};

constexpr std::uint64_t half = std::uint64_t{1} << 30;  // where the owner checks

TEST(ScopeTest, a_scope_subtracts_finished_tasks_before_a_count_is_full) {
  for (const Await what : {Await::children, Await::descendants}) {
    OldScope scope(half - 2);
    for (std::uint32_t task = 1; task <= 3; ++task) {
      scope.count_spawned();
      EXPECT_EQ(scope.outstanding(), task);
      EXPECT_FALSE(scope.finished_all(what));
    }
    EXPECT_LE(scope.spawned, 3 * one);
    EXPECT_FALSE(scope.count_finished(one));
    EXPECT_FALSE(scope.begin_wait(what));
    EXPECT_FALSE(scope.count_finished(one));
    EXPECT_TRUE(scope.count_finished(one));
  }
}

// A wait for children subtracts one of the two counts: the other count goes on.
TEST(ScopeTest, waits_for_children_do_not_fill_the_count_of_descendants) {
  OldScope scope(half - 1000);
  for (int round = 0; round < 2000; ++round) {
    scope.count_spawned();
    EXPECT_FALSE(scope.count_finished(one));
    ASSERT_TRUE(scope.finished_all(Await::children));
    ASSERT_TRUE(scope.finished_all(Await::descendants));
    ASSERT_TRUE(scope.begin_wait(Await::children));
    ASSERT_EQ(scope.outstanding(), 0u);
  }
  EXPECT_LT(scope.spawned, 2000 * one);
  EXPECT_TRUE(scope.begin_wait(Await::descendants));
}

// Tasks finish while the owner subtracts: none is lost, and exactly one is the last.
TEST(ScopeTest, tasks_that_end_meanwhile_are_counted) {
  constexpr int tasks = 40'000;
  constexpr int threads = 4;
  for (int round = 0; round < 20; ++round) {
    OldScope scope(half - tasks / 2);
    std::array<std::atomic<int>, threads> begun{};
    std::atomic<int> last{0};
    std::vector<std::thread> all;
    for (std::atomic<int>& mine : begun) {
      all.emplace_back([&scope, &mine, &last] {
        for (int ended = 0; ended < tasks / threads;) {
          if (ended == mine.load(std::memory_order_acquire)) {
            std::this_thread::yield();
            continue;
          }
          if (scope.count_finished(one)) ++last;
          ++ended;
        }
      });
    }
    for (int task = 0; task < tasks; ++task) {
      scope.count_spawned();
      begun[task % threads].fetch_add(1, std::memory_order_release);
    }
    const bool over = scope.begin_wait(Await::descendants);
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(last, over ? 0 : 1);
    EXPECT_EQ(scope.outstanding(), 0u);
    EXPECT_LE(scope.spawned & UINT32_MAX, std::uint64_t{tasks});
  }
}

}  // namespace
}  // namespace imbrex::task
