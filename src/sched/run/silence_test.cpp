// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/silence.hpp"

#include <gtest/gtest.h>

namespace imbrex::sched {
namespace {

constexpr std::uint64_t us = 1000;  // ticks
constexpr std::uint64_t ms = 1000 * us;
constexpr NapLimits limits{.us = us, .most_us = 1000};

TEST(SilenceTest, naps_begin_late_grow_with_the_silence_and_have_a_longest) {
  const Silence silence(limits, 5 * ms);
  EXPECT_EQ(silence.nap_us(5 * ms), 0u);
  EXPECT_EQ(silence.nap_us(30 * ms), 0u);
  EXPECT_EQ(silence.nap_us(31 * ms), 50u);
  EXPECT_EQ(silence.nap_us(105 * ms), 195u);
  EXPECT_EQ(silence.nap_us(10'000 * ms), 1000u);
}

TEST(SilenceTest, a_nap_takes_a_512th_of_the_silence_at_most) {
  const Silence silence(limits, 0);
  for (std::uint64_t now = us; now < 2000 * ms; now += now / 7 + 1) {
    EXPECT_LE(silence.nap_us(now) * us, now / 512) << now;
  }
}

TEST(SilenceTest, a_completion_ends_the_silence) {
  Silence silence(limits, 0);
  silence.end(500 * ms);
  EXPECT_EQ(silence.nap_us(520 * ms), 0u);
  EXPECT_EQ(silence.nap_us(526 * ms), 50u);
  EXPECT_EQ(silence.nap_us(499 * ms), 0u) << "the clock was read before the completion";
}

TEST(SilenceTest, without_a_longest_nap_there_is_none) {
  const Silence silence({.us = us, .most_us = 0}, 0);
  EXPECT_EQ(silence.nap_us(10'000 * ms), 0u);
}

TEST(SilenceTest, a_short_longest_nap_begins_early) {
  const Silence silence({.us = us, .most_us = 2}, 0);
  EXPECT_EQ(silence.nap_us(1023 * us), 0u);
  EXPECT_EQ(silence.nap_us(1024 * us), 2u);
}

struct Polls {
  std::uint64_t spent;
  std::uint64_t every;
};

// Returns the nap after such polls, of which those that follow a possible nap come after one.
std::uint64_t nap_after(const Polls& polls, const std::uint64_t until) {
  Silence silence(limits, 0);
  for (std::uint64_t now = 0; now < until; now += polls.every) {
    const bool naps = silence.nap_us(now) != 0;
    silence.note_poll(now + polls.spent,
                      {.spent = polls.spent, .usual = us / 2, .after_nap = naps});
  }
  return silence.nap_us(until);
}

TEST(SilenceTest, polls_that_move_data_let_no_nap_begin) {
  EXPECT_EQ(nap_after({.spent = 10 * us, .every = 20 * us}, 900 * ms), 0u);
  EXPECT_EQ(nap_after({.spent = 100 * us, .every = 1000 * us}, 900 * ms), 0u);
}

TEST(SilenceTest, interrupts_cold_caches_and_lost_processors_do_not_pass_for_data) {
  EXPECT_EQ(nap_after({.spent = us / 2, .every = us}, 900 * ms), 1000u);
  EXPECT_EQ(nap_after({.spent = 15 * us, .every = 1000 * us}, 900 * ms), 1000u);
  EXPECT_EQ(nap_after({.spent = 3000 * us, .every = 6000 * us}, 900 * ms), 1000u);
  Silence silence(limits, 0);
  for (std::uint64_t now = 26 * ms; now < 900 * ms; now += 100 * us) {
    ASSERT_GT(silence.nap_us(now), 0u) << now;
    silence.note_poll(now, {.spent = 15 * us, .usual = us / 2, .after_nap = true});
  }
}

// A long message begins after a long silence: its first pieces come between naps.
TEST(SilenceTest, data_that_arrives_between_naps_shortens_them_and_then_ends_them) {
  Silence silence(limits, 0);
  std::uint64_t now = 1000 * ms;
  int naps = 0;
  std::uint64_t slept = 0;
  for (std::uint64_t nap = silence.nap_us(now); nap != 0; nap = silence.nap_us(now)) {
    ++naps;
    slept += nap;
    now += nap * us + 30 * us;
    silence.note_poll(now, {.spent = 30 * us, .usual = us / 2, .after_nap = true});
  }
  EXPECT_LE(naps, 80);
  EXPECT_LE(slept, 6000u);
}

TEST(SilenceTest, one_slow_poll_between_naps_changes_nothing) {
  Silence silence(limits, 0);
  constexpr Silence::Poll slow{.spent = 60 * us, .usual = us / 2, .after_nap = true};
  constexpr Silence::Poll quick{.spent = us, .usual = us / 2, .after_nap = true};
  silence.note_poll(1000 * ms, slow);
  EXPECT_EQ(silence.nap_us(1000 * ms), 1000u);
  silence.note_poll(1001 * ms, quick);
  silence.note_poll(1002 * ms, slow);
  EXPECT_EQ(silence.nap_us(1002 * ms), 1000u);
  silence.note_poll(1003 * ms, slow);
  EXPECT_EQ(silence.nap_us(1003 * ms), 50u);
}

TEST(SilenceTest, times_of_polls_are_read_only_after_a_while) {
  const Silence silence(limits, 0);
  EXPECT_FALSE(silence.is_long(400 * us));
  EXPECT_TRUE(silence.is_long(600 * us));
}

}  // namespace
}  // namespace imbrex::sched
