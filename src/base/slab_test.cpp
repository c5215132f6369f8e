// SPDX-License-Identifier: BSD-3-Clause
#include "base/slab.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace imbrex::base {
namespace {

TEST(Slab, gives_distinct_aligned_slots_that_do_not_overlap) {
  SlabPool pool;
  SlabCache cache(pool);
  std::set<std::uintptr_t> slots;
  for (int count = 0; count < 5000; ++count) {
    slots.insert(reinterpret_cast<std::uintptr_t>(cache.take(slab_class(192))));
  }
  ASSERT_EQ(slots.size(), 5000u);
  std::uintptr_t last = 0;
  for (const std::uintptr_t slot : slots) {
    EXPECT_EQ(slot % slab_unit, 0u);
    EXPECT_GE(slot - last, 192u);
    last = slot;
  }
}

TEST(Slab, reuses_slots_so_that_memory_does_not_grow) {
  SlabPool pool;
  SlabCache cache(pool);
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> slots;
    for (int count = 0; count < 20'000; ++count) slots.push_back(cache.take(2));
    for (void* const slot : slots) cache.give(slot, 2);
    if (round == 0) continue;
    EXPECT_LE(pool.mapped_bytes(), 20'000u * 128 + 512 * 1024);
  }
}

// Methodology: one thread only takes, another only gives; without batches through the pool the
// first thread would map memory without end.
TEST(Slab, returns_slots_that_another_thread_gave) {
  SlabPool pool;
  std::vector<void*> passed;
  for (int round = 0; round < 20; ++round) {
    passed.clear();
    std::thread([&] {
      SlabCache cache(pool);
      for (int count = 0; count < 10'000; ++count) passed.push_back(cache.take(3));
    }).join();
    std::thread([&] {
      SlabCache cache(pool);
      for (void* const slot : passed) cache.give(slot, 3);
    }).join();
  }
  EXPECT_LE(pool.mapped_bytes(), 10'000u * 192 + 1024 * 1024);
}

// Eight threads in turn give what another takes: each keeps a part.
TEST(Slab, caches_keep_at_most_a_mebibyte_of_a_class) {
  SlabPool pool;
  constexpr std::size_t slab_class = 24;  // 1,536 bytes: 680 slots are 1 MiB
  SlabCache taker(pool);
  std::vector<std::unique_ptr<SlabCache>> givers;
  for (int count = 0; count < 8; ++count) {
    givers.push_back(std::make_unique<SlabCache>(pool));
    for (int slots = 0; slots < 4000; ++slots) {
      givers.back()->give(taker.take(slab_class), slab_class);
    }
  }
  EXPECT_LE(pool.mapped_bytes(), std::size_t{9} << 20);
}

TEST(Slab, walks_every_slot_and_the_large_ones) {
  SlabPool pool;
  SlabCache cache(pool);
  std::set<void*> taken{cache.take(1), cache.take(4), cache.take(4)};
  void* const large = pool.take_large(5000);
  taken.insert(large);
  std::set<void*> seen;
  pool.for_each([&seen](std::byte* const slot) { seen.insert(slot); });
  for (void* const slot : taken) EXPECT_EQ(seen.count(slot), 1u);
  pool.give_large(large);
  seen.clear();
  pool.for_each([&seen](std::byte* const slot) { seen.insert(slot); });
  EXPECT_EQ(seen.count(large), 0u);
}

TEST(Slab, large_slots_are_given_back_in_any_order) {
  SlabPool pool;
  std::vector<void*> large;
  for (std::size_t i = 0; i < 100; ++i) large.push_back(pool.take_large(2000 + i));
  for (std::size_t step = 0; step < 100; ++step) {
    const auto chosen = large.begin() + static_cast<std::ptrdiff_t>(step * 37 % large.size());
    pool.give_large(*chosen);
    large.erase(chosen);
    std::set<void*> seen;
    pool.for_each([&seen](std::byte* const slot) { seen.insert(slot); });
    EXPECT_EQ(seen, std::set<void*>(large.begin(), large.end()));
  }
  EXPECT_FALSE(pool.any_of([](std::byte*) { return true; }));
}

}  // namespace
}  // namespace imbrex::base
