// SPDX-License-Identifier: BSD-3-Clause
#include "base/deque.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

namespace imbrex::base {
namespace {

TEST(Deque, pops_the_newest_and_steals_the_oldest) {
  Deque<int> deque;
  int items[3];
  for (int& item : items) deque.push(&item);
  EXPECT_EQ(deque.back(), &items[2]);
  EXPECT_EQ(deque.steal(), &items[0]);
  EXPECT_EQ(deque.pop(), &items[2]);
  EXPECT_EQ(deque.pop(), &items[1]);
  EXPECT_EQ(deque.pop(), nullptr);
  EXPECT_EQ(deque.steal(), nullptr);
  EXPECT_EQ(deque.back(), nullptr);
}

// Methodology: random operations by one thread, compared with std::deque after each.
TEST(Deque, behaves_like_a_sequential_deque_for_its_owner) {
  std::mt19937 random(20261121);
  std::vector<int> items(20'000);
  Deque<int> deque;
  std::deque<int*> model;
  std::size_t next = 0;
  while (next < items.size()) {
    const unsigned choice = random() % 5;
    if (choice < 3) {
      deque.push(&items[next]);
      model.push_back(&items[next++]);
    } else if (choice == 3) {
      int* const expected = model.empty() ? nullptr : model.back();
      if (expected != nullptr) model.pop_back();
      ASSERT_EQ(deque.pop(), expected);
    } else {
      int* const expected = model.empty() ? nullptr : model.front();
      if (expected != nullptr) model.pop_front();
      ASSERT_EQ(deque.steal(), expected);
    }
    ASSERT_EQ(deque.size(), static_cast<std::int64_t>(model.size()));
  }
}

// Methodology: each item carries a count of how often it was taken; in the end all must be one.
TEST(Deque, hands_out_each_item_once_while_thieves_race_with_the_owner) {
  constexpr int count = 100'000;
  struct Item {
    std::atomic<int> taken{0};
  };
  std::vector<Item> items(count);
  Deque<Item> deque;
  std::atomic<bool> done{false};
  std::vector<std::thread> thieves;
  for (int thief = 0; thief < 3; ++thief) {
    thieves.emplace_back([&] {
      while (!done.load(std::memory_order_acquire)) {
        if (Item* const item = deque.steal()) item->taken.fetch_add(1);
      }
    });
  }
  std::mt19937 random(7);
  for (Item& item : items) {
    deque.push(&item);
    if (random() % 3 == 0) {
      if (Item* const popped = deque.pop()) popped->taken.fetch_add(1);
    }
  }
  while (Item* const item = deque.pop()) item->taken.fetch_add(1);
  while (deque.size() != 0) {
  }
  done.store(true, std::memory_order_release);
  for (std::thread& thief : thieves) thief.join();
  for (const Item& item : items) ASSERT_EQ(item.taken.load(), 1);
}

}  // namespace
}  // namespace imbrex::base
