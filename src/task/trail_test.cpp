// SPDX-License-Identifier: BSD-3-Clause
#include "task/trail.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace imbrex::task {
namespace {

TEST(TrailTest, a_path_is_as_long_as_the_longest_of_its_branches) {
  const auto trails = std::make_unique<Trails>();
  Step first{0, 0}, second{0, 0}, third{0, 0};
  Path path{};
  trails->begin(first, 7);
  first.length_us = 10;
  trails->note(first, 0);
  trails->pass(first, second);
  trails->pass(first, third);
  EXPECT_FALSE(trails->leave(first, path));
  second.length_us += 5;
  trails->note(second, 100);
  EXPECT_FALSE(trails->leave(second, path));
  third.length_us += 50;
  trails->note(third, 0);
  ASSERT_TRUE(trails->leave(third, path));
  EXPECT_EQ(path.message, 7u);
  EXPECT_EQ(path.length_us, 115.0F);
  EXPECT_EQ(third.trail, 0u);
}

TEST(TrailTest, a_message_beyond_the_last_place_is_not_followed_and_places_are_used_again) {
  const auto trails = std::make_unique<Trails>();
  std::vector<Step> steps(5000, Step{0, 0});
  Path path{};
  for (int round = 0; round < 3; ++round) {
    std::size_t followed = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      steps[i] = {0, 0};
      trails->begin(steps[i], i);
      if (steps[i].trail != 0) ++followed;
    }
    EXPECT_EQ(followed, 4096u);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].trail == 0) continue;
      ASSERT_TRUE(trails->leave(steps[i], path));
      EXPECT_EQ(path.message, i);
      EXPECT_EQ(path.length_us, 0.0F) << "nothing is left of whoever had the place before";
    }
  }
}

// Each thread hands steps to other threads and takes theirs; each trail is reported once, with the
// length that all its tasks have noted.
TEST(TrailTest, trails_that_threads_share_end_once_and_whole) {
  constexpr int threads = 4;
  constexpr int rounds = 10'000;
  const auto trails = std::make_unique<Trails>();
  std::atomic<int> begun = 0, ended = 0, wrong = 0;
  std::vector<std::atomic<std::uint64_t>> handed(16);  // one step each, packed; 0: none
  const auto pack = [](const Step& step) {
    return std::uint64_t{step.trail} << 32 | static_cast<std::uint32_t>(step.length_us);
  };
  const auto finish_step = [&](Step step) {
    trails->note(step, static_cast<float>(step.trail));
    const auto number = step.trail;
    Path path{};
    if (!trails->leave(step, path)) return;
    ended.fetch_add(1);
    if (path.length_us < static_cast<float>(number)) wrong.fetch_add(1);
  };
  const auto take = [&](std::atomic<std::uint64_t>& place) {
    const std::uint64_t packed = place.exchange(0);
    if (packed == 0) return;
    finish_step({static_cast<std::uint32_t>(packed >> 32),
                 static_cast<float>(static_cast<std::uint32_t>(packed))});
  };
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      for (int i = 0; i < rounds; ++i) {
        Step mine{0, 0};
        trails->begin(mine, static_cast<std::uint64_t>(i));
        if (mine.trail == 0) continue;
        begun.fetch_add(1);
        for (unsigned n = random() % 3; n != 0; --n) {
          Step next{0, 0};
          trails->pass(mine, next);
          const std::uint64_t old = handed[random() % handed.size()].exchange(pack(next));
          if (old != 0) {
            finish_step({static_cast<std::uint32_t>(old >> 32),
                         static_cast<float>(static_cast<std::uint32_t>(old))});
          }
        }
        finish_step(mine);
        take(handed[random() % handed.size()]);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  for (auto& place : handed) take(place);
  EXPECT_EQ(begun.load(), ended.load());
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace imbrex::task
