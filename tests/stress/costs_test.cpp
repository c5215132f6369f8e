// SPDX-License-Identifier: BSD-3-Clause
// What a task costs does not grow with what else is there: many large tasks, many accesses of one
// task, many tasks that wait. Processor time of one thread, the least of several runs, since other
// programs run beside the test; the bounds lie far from both the right costs and quadratic ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

double seconds(const clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double least_seconds(const int runs, const std::function<void()>& run) {
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    const double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
    run();
    least = std::min(least, seconds(CLOCK_THREAD_CPUTIME_ID) - begin);
  }
  return least;
}

// Runs `count` tasks with 27 accesses each, all alive at once.
void run_large_tasks(const int count) {
  std::vector<double> points(static_cast<std::size_t>(count) + 27);
  finish([&] {
    Promise<void> event;
    int gate = 0;
    task("gate").out(gate).launch([&event] { event.future().get(); });
    for (int i = 0; i < count; ++i) {
      auto builder = task("27 points");
      for (int k = 0; k < 25; ++k) (void)builder.in(points[static_cast<std::size_t>(i + k)]);
      builder.in(gate).launch([] {});
    }
    event.set();
    taskwait();
  });
}

TEST(Costs, a_large_task_costs_the_same_however_many_there_are) {
  if (sanitized) GTEST_SKIP() << "a sanitizer has costs of its own";
  RuntimeOptions made = config(1, "");
  made.tasks_ahead = 0;
  const Runtime runtime(made);
  const double few = least_seconds(5, [] {
    for (int i = 0; i < 20; ++i) run_large_tasks(1000);
  });
  const double many = least_seconds(3, [] { run_large_tasks(40'000); });
  EXPECT_LT(many / 2, few * 4) << "20,000 tasks: " << few << " s, of 40,000: " << many / 2 << " s";
}

// One task with so many accesses, in no order.
void run_wide_task(const int count, const bool mutexes) {
  std::vector<char> objects(static_cast<std::size_t>(count));
  std::vector<std::size_t> order(objects.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, std::mt19937(17));
  auto builder = task("wide");
  for (const std::size_t i : order) {
    mutexes ? (void)builder.mutexinoutset(objects[i]) : (void)builder.in(objects[i]);
  }
  builder.spawn([] {}).get();
}

TEST(Costs, an_access_costs_the_same_however_many_its_task_has) {
  if (sanitized) GTEST_SKIP() << "a sanitizer has costs of its own";
  const Runtime runtime(config(1, ""));
  for (const bool mutexes : {false, true}) {
    const double few = least_seconds(5, [mutexes] {
      for (int i = 0; i < 10; ++i) run_wide_task(5000, mutexes);
    });
    const double many = least_seconds(3, [mutexes] { run_wide_task(50'000, mutexes); });
    EXPECT_LT(many, few * 4) << "50,000 accesses of ten tasks: " << few << " s, of one: " << many;
    EXPECT_LT(many, 0.2);
  }
}

TEST(Costs, tasks_that_wait_for_a_foreign_thread_cost_its_check_little_time) {
  if (sanitized) GTEST_SKIP() << "a sanitizer has costs of its own";
  for (const bool behind_one : {false, true}) {
    RuntimeOptions made = config(1, "");
    made.tasks_ahead = 0;
    const Runtime runtime(made);
    finish([behind_one] {
      Promise<void> go("go"), measured("measured");
      int gate = 0;
      if (behind_one) task("waits").in(go.future()).out(gate).launch([] {});
      for (int i = 0; i < 200'000; ++i) {
        behind_one ? task("follows").in(gate).launch([] {})
                   : task("waits").in(go.future()).launch([] {});
      }
      double share = 0;
      std::thread thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        const double begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
        const double at = seconds(CLOCK_MONOTONIC);
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        share = (seconds(CLOCK_PROCESS_CPUTIME_ID) - begin) / (seconds(CLOCK_MONOTONIC) - at);
        go.set();
        measured.set();
      });
      measured.future().get();
      thread.join();
      EXPECT_LT(share, 0.05);
    });
  }
}

}  // namespace
}  // namespace imbrex::test
