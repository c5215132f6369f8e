// SPDX-License-Identifier: BSD-3-Clause
#include "hcmpi/handles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace imbrex::hcmpi {
namespace {

struct Thing : Counted {
  static inline std::atomic<int> live{0};
  Thing() { live.fetch_add(1, std::memory_order_relaxed); }
  ~Thing() { live.fetch_sub(1, std::memory_order_relaxed); }
  std::atomic<int> uses{0};
};
using Things = Handles<Thing>;

TEST(Handles, find_what_is_there_and_nothing_else) {
  Thing* const one = Things::all().add(std::make_unique<Thing>());
  const int garbage = 0;
  EXPECT_EQ(Things::all().find(one).get(), one);
  EXPECT_FALSE(Things::all().find(nullptr));
  EXPECT_FALSE(Things::all().find(&garbage));
  {
    const Ref<Thing> held = Things::all().find(one);
    EXPECT_EQ(Things::all().take(one).get(), one);
    EXPECT_FALSE(Things::all().find(one));
    EXPECT_FALSE(Things::all().take(one));
    EXPECT_EQ(Thing::live, 1);  // the reference keeps it
  }
  EXPECT_EQ(Thing::live, 0);
}

// Methodology: random operations against a set of what should be there. New objects may come where
// freed ones were, so what is known is known by its address alone.
TEST(Handles, do_as_a_set_does) {
  std::mt19937 random(7);
  std::set<Thing*> there;
  std::vector<Thing*> known;
  for (int i = 0; i < 20'000; ++i) {
    if (known.empty() || random() % 3 == 0) {
      known.push_back(Things::all().add(std::make_unique<Thing>()));
      there.insert(known.back());
      continue;
    }
    Thing* const one = known[random() % known.size()];
    ASSERT_EQ(static_cast<bool>(Things::all().find(one)), there.contains(one));
    if (random() % 2 == 0) {
      ASSERT_EQ(static_cast<bool>(Things::all().take(one)), there.erase(one) != 0);
    }
  }
  ASSERT_EQ(Thing::live, static_cast<int>(there.size()));
  for (Thing* const one : there) (void)Things::all().take(one);
  EXPECT_EQ(Thing::live, 0);
}

// Methodology: all threads use and free the same few handles, of which each is freed by one of them
// only, and used by none after that.
TEST(Handles, are_freed_by_one_of_many_threads) {
  constexpr int count = 64;
  for (int round = 0; round < 50; ++round) {
    std::vector<Thing*> handles;
    for (int i = 0; i < count; ++i) {
      handles.push_back(Things::all().add(std::make_unique<Thing>()));
    }
    std::atomic<int> freed{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (Thing* const handle : handles) {
          if (const Ref<Thing> found = Things::all().find(handle)) {
            found->uses.fetch_add(1, std::memory_order_relaxed);
          }
          if (Things::all().take(handle)) freed.fetch_add(1, std::memory_order_relaxed);
          EXPECT_FALSE(Things::all().find(handle));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(freed, count);
  }
  EXPECT_EQ(Thing::live, 0);
}

}  // namespace
}  // namespace imbrex::hcmpi
