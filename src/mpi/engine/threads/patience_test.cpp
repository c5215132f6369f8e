// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/threads/patience.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace imbrex::mpi::threads {
namespace {

constexpr std::uint64_t us = 1'000;
constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t gap = 2 * ms;

struct Count {
  int wakes = 0;
  int polls = 0;
  std::uint64_t first_poll_ns = 0;
};

// Methodology: time passes by the naps alone. A worker polls at the end of each task, the thread
// when it is told to.
Count beside_tasks_of(const std::uint64_t task_ns, const std::uint64_t duration_ns,
                      const std::uint64_t apart_ns) {
  Patience patience;
  Count count;
  std::uint64_t own_poll = 0;
  patience.begin({0, apart_ns}, gap);
  for (std::uint64_t now = 0; now < duration_ns;) {
    const std::uint64_t last = std::max(own_poll, now / task_ns * task_ns);
    const std::uint64_t nap = patience.nap_ns({now - last, apart_ns}, gap);
    if (nap == 0) {
      if (count.polls++ == 0) count.first_poll_ns = now;
      own_poll = now;
    } else {
      ++count.wakes;
      now += nap;
    }
  }
  return count;
}

TEST(Patience, leaves_short_tasks_to_the_workers) {
  const Count count = beside_tasks_of(ms, 1000 * ms, ms);
  EXPECT_EQ(count.polls, 0);
  EXPECT_LE(count.wakes, 1000 / 8 + 2);
}

TEST(Patience, answers_soon_among_long_tasks) {
  const Count count = beside_tasks_of(50 * ms, 50 * ms, 50 * ms);
  EXPECT_EQ(count.first_poll_ns, 250 * us);
  EXPECT_GE(count.polls, 50 / 2);
  EXPECT_LE(count.wakes, 50 / 2 + 3);  // 2 % of the time, at 40 microseconds each
}

TEST(Patience, naps_where_something_was_outstanding_before_it_could_sleep) {
  Patience patience;
  EXPECT_EQ(patience.nap_ns({.age_ns = 0, .apart_ns = ms}, gap), gap);
  Patience among_long_tasks;
  EXPECT_EQ(among_long_tasks.nap_ns({.age_ns = 0, .apart_ns = 50 * ms}, gap), gap / 8);
}

TEST(Patience, begins_anew_when_a_worker_has_polled_between_long_tasks) {
  const Count count = beside_tasks_of(10 * ms, 1000 * ms, 10 * ms);
  EXPECT_GE(count.polls, 100 * 5);
  EXPECT_LE(count.wakes, 100 * 8);
}

TEST(Patience, ends_when_a_task_is_long_for_the_first_time) {
  const Count count = beside_tasks_of(500 * ms, 500 * ms, ms);
  EXPECT_EQ(count.first_poll_ns, gap);
  EXPECT_GE(count.polls, 200);
}

}  // namespace
}  // namespace imbrex::mpi::threads
