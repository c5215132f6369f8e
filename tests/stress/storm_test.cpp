// SPDX-License-Identifier: BSD-3-Clause
// Many tasks at once that are spawned, stolen, suspended and woken from all sides. Each test checks
// that everything ran exactly once and, by the fixture, that nothing is left.
#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <thread>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class StormTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, StormTest,
                         testing::ValuesIn(setups({1, 2, 4, 8, 64}, unseeded_policies)), name_of);
INSTANTIATE_TEST_SUITE_P(Seeded, StormTest,
                         testing::ValuesIn(setups({1, 2, 8}, {"seeded:3", "seeded:77"})), name_of);

// Seeded schedules run one worker at a time, with a hand-over at each step.
int count_for(const Setup& setup, int count) {
  const bool slow = std::string(setup.policy).starts_with("seeded");
  return scaled(slow ? count / 10 : count);
}

TEST_P(StormTest, every_task_of_a_spawn_storm_runs_once) {
  const int count = count_for(GetParam(), 100'000);
  std::atomic<long> sum = 0;
  finish([&] {
    for (int i = 0; i < count; ++i) {
      task("drop").launch([&sum, i] { sum.fetch_add(i, std::memory_order_relaxed); });
    }
  });
  EXPECT_EQ(sum.load(), static_cast<long>(count) * (count - 1) / 2);
}

void branch(std::atomic<long>& leaves, int depth) {
  if (depth == 0) {
    leaves.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  for (int i = 0; i < 2; ++i) {
    task("branch").launch([&leaves, depth] { branch(leaves, depth - 1); });
  }
}

TEST_P(StormTest, every_task_of_a_steal_storm_runs_once) {
  const int depth = sanitized ? 8 : 14;
  for (int round = 0; round < 3; ++round) {
    std::atomic<long> leaves = 0;
    finish([&] { branch(leaves, depth); });
    ASSERT_EQ(leaves.load(), 1L << depth);
  }
}

long nested(int depth, int width) {
  if (depth == 0) return 1;
  std::atomic<long> sum = 0;
  finish([&] {
    for (int i = 0; i < width; ++i) {
      task("nested").launch([&sum, depth, width] { sum += nested(depth - 1, width); });
    }
  });
  return sum.load();
}

TEST_P(StormTest, nested_finish_scopes_count_right) {
  EXPECT_EQ(nested(sanitized ? 3 : 6, 4), sanitized ? 64 : 4096);
}

TEST_P(StormTest, tasks_that_suspend_and_resume_many_times_lose_no_wake_up) {
  const int tasks = count_for(GetParam(), 1000);
  const int rounds = 20;
  std::atomic<long> steps = 0;
  finish([&] {
    for (int i = 0; i < tasks; ++i) {
      task("sleeper").launch([&steps, i] {
        for (int round = 0; round < rounds; ++round) {
          Promise<void> event;
          task("waker").launch([&event] { event.set(); });
          if ((i + round) % 3 == 0) yield();
          event.future().get();
          steps.fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
  });
  EXPECT_EQ(steps.load(), static_cast<long>(tasks) * rounds);
}

TEST_P(StormTest, threads_of_the_program_fire_while_tasks_wait) {
  const int tasks = count_for(GetParam(), 2000);
  std::deque<Promise<void>> events(tasks);
  std::atomic<int> woken = 0;
  std::atomic<int> next = 0;
  std::deque<std::thread> threads;
  finish([&] {
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int k = next++; k < tasks; k = next++) events[k].set();
      });
    }
    for (int i = 0; i < tasks; ++i) {
      task("waiter").launch([&, i] {
        events[i].future().get();
        ++woken;
      });
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(woken.load(), tasks);
}

TEST_P(StormTest, when_any_takes_one_of_two_racing_threads) {
  const int rounds = count_for(GetParam(), 2000);
  for (int round = 0; round < rounds; round += 100) {
    const int batch = std::min(100, rounds - round);
    std::deque<Promise<int>> left(batch);
    std::deque<Promise<int>> right(batch);
    std::thread one([&] {
      for (Promise<int>& promise : left) promise.set(1);
    });
    std::thread two([&] {
      for (Promise<int>& promise : right) promise.set(2);
    });
    finish([&] {
      for (int i = 0; i < batch; ++i) {
        task("either").launch([a = left[i].future(), b = right[i].future()] {
          const std::size_t first = when_any(a, b).get();
          EXPECT_TRUE(first == 0 ? a.ready() : b.ready());
          EXPECT_EQ(first == 0 ? a.get() : b.get(), first == 0 ? 1 : 2);
          when_all(a, b).get();
          EXPECT_TRUE(a.ready() && b.ready());
        });
      }
    });
    one.join();
    two.join();
  }
}

TEST_P(StormTest, promises_that_are_set_and_dropped_at_once_are_set_or_broken) {
  const int rounds = count_for(GetParam(), 1000);
  int set = 0;
  int broken = 0;
  for (int i = 0; i < rounds; ++i) {
    Future<int> future;
    {
      Promise<int> promise;
      future = promise.future();
      for (int k = 0; k < 3; ++k) {
        task("holder").launch([promise, k, i] {
          if (k == 1 && i % 2 == 0) promise.set(i);
        });
      }
    }
    try {
      EXPECT_EQ(future.get(), i);
      ++set;
    } catch (const BrokenPromise&) {
      ++broken;
    }
  }
  EXPECT_EQ(set, (rounds + 1) / 2);
  EXPECT_EQ(broken, rounds / 2);
}

TEST_P(StormTest, a_random_mix_of_everything_completes) {
  const int tasks = count_for(GetParam(), 3000);
  std::mt19937 random(12345);
  std::deque<int> cells(8, 0);
  std::vector<Future<int>> results;
  for (int i = 0; i < tasks; ++i) {
    TaskBuilder builder = task("mix");
    (void)builder.priority(static_cast<int>(random() % 5));
    int& cell = cells[random() % cells.size()];
    switch (random() % 4) {
      case 0: (void)builder.in(cell); break;
      case 1: (void)builder.mutexinoutset(cell); break;
      case 2: (void)builder.inoutset(cell); break;
      default: (void)builder.inout(cell); break;
    }
    const int what = static_cast<int>(random() % 5);
    Future<int> earlier = results.empty() ? Future<int>() : results[random() % results.size()];
    results.push_back(builder.spawn([what, i, earlier]() -> int {
      if (what == 0) yield();
      if (what == 1 && earlier.valid() && earlier.ready()) return earlier.get() % 7 + i;
      if (what == 2) finish([] { task("inner").launch([] { yield(); }); });
      if (what == 3) return task("child").spawn([i] { return i; }).get();
      return i;
    }));
  }
  when_all(results).get();
  for (int i = 0; i < tasks; ++i) ASSERT_GE(results[i].get(), i);
}

}  // namespace
}  // namespace imbrex::test
