// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/matching/object_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

namespace {

using imbrex::mpi::messages::CommonSpares;
using imbrex::mpi::messages::Spares;

struct Thing {
  Thing* next = nullptr;
  std::atomic<bool> in_use{false};
};

CommonSpares<Thing> common;
using Own = Spares<Thing, common>;

// The object that was given last is the most likely one to be in the cache.
TEST(Spares, gives_back_the_last_first) {
  Own own;
  ASSERT_EQ(own.take(), nullptr);
  Thing first, second;
  own.give(first);
  own.give(second);
  EXPECT_EQ(own.take(), &second);
  EXPECT_EQ(own.take(), &first);
  EXPECT_EQ(own.take(), nullptr);
}

TEST(Spares, a_thread_that_only_gives_supplies_one_that_only_takes) {
  std::vector<Thing> things(1000);
  std::thread([&] {
    Own own;
    for (Thing& thing : things) own.give(thing);
  }).join();  // what it kept at its end is there too
  Own own;
  for (std::size_t i = 0; i < things.size(); ++i) {
    Thing* const thing = own.take();
    ASSERT_NE(thing, nullptr) << "after " << i << " of " << things.size();
    EXPECT_FALSE(thing->in_use.exchange(true));
  }
  EXPECT_EQ(own.take(), nullptr);
}

TEST(Spares, nobody_has_what_another_has) {
  constexpr int threads = 4;
  constexpr int steps = 100'000;
  constexpr std::size_t held_max = 200;
  std::deque<Thing> made[threads];
  std::vector<std::thread> all;
  for (int number = 0; number < threads; ++number) {
    all.emplace_back([&, number] {
      Own own;
      std::mt19937 random(static_cast<unsigned>(number));
      std::vector<Thing*> held;
      for (int step = 0; step < steps; ++step) {
        const bool takes = held.empty() || (held.size() < held_max && random() % 2 == 0);
        if (takes) {
          Thing* thing = own.take();
          if (thing == nullptr) thing = &made[number].emplace_back();
          ASSERT_FALSE(thing->in_use.exchange(true));
          held.push_back(thing);
        } else {
          ASSERT_TRUE(held.back()->in_use.exchange(false));
          own.give(*held.back());
          held.pop_back();
        }
      }
      for (Thing* const thing : held) {
        thing->in_use = false;
        own.give(*thing);
      }
    });
  }
  for (std::thread& thread : all) thread.join();

  std::size_t count = 0;
  for (const auto& things : made) count += things.size();
  Own own;
  std::size_t found = 0;
  while (Thing* const thing = own.take()) {
    EXPECT_FALSE(thing->in_use.exchange(true));
    ++found;
  }
  EXPECT_EQ(found, count);
}

}  // namespace
