// SPDX-License-Identifier: BSD-3-Clause
#include "base/ring.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace imbrex::base {
namespace {

TEST(Ring, says_in_the_table_that_it_is_open_from_its_first_item_on) {
  std::atomic<std::uint64_t> marks{1};
  int item = 0;
  Ring<int> ring;
  ring.announce(marks, 4);
  EXPECT_FALSE(ring.is_open());
  for (int round = 0; round < 2; ++round) {
    ring.push_back(&item);
    EXPECT_EQ(marks.load(), 5u);
    EXPECT_TRUE(ring.is_open());
    EXPECT_EQ(ring.pop_front(), &item);
    ring.close();
    marks.store(1);
    EXPECT_FALSE(ring.is_open());
    ring.push_front(&item);
    EXPECT_EQ(marks.load(), 5u);
    EXPECT_EQ(ring.pop_back(), &item);
    ring.close();
    marks.store(1);
  }
}

// Methodology: random operations, more pushes than pops, compared with std::deque after each.
TEST(Ring, behaves_like_a_sequential_deque) {
  std::mt19937 random(20261121);
  std::vector<int> items(20'000);
  Ring<int> ring;
  std::deque<int*> model;
  for (std::size_t next = 0; next < items.size();) {
    const unsigned choice = random() % 6;
    if (choice < 3) {
      ring.push_back(&items[next]);
      model.push_back(&items[next++]);
    } else if (choice == 5) {
      ring.push_front(&items[next]);
      model.push_front(&items[next++]);
    } else if (choice == 3) {
      int* const expected = model.empty() ? nullptr : model.back();
      if (expected != nullptr) model.pop_back();
      ASSERT_EQ(ring.pop_back(), expected);
    } else {
      int* const expected = model.empty() ? nullptr : model.front();
      if (expected != nullptr) model.pop_front();
      ASSERT_EQ(ring.pop_front(), expected);
    }
    ASSERT_EQ(ring.size(), static_cast<std::int64_t>(model.size()));
    ASSERT_EQ(ring.back(), model.empty() ? nullptr : model.back());
    ASSERT_EQ(ring.front(), model.empty() ? nullptr : model.front());
  }
}

// Methodology: random operations as above, with a value for each item that says whether it is
// wanted.
TEST(Ring, gives_what_is_wanted_and_keeps_the_rest_in_order) {
  std::mt19937 random(20261125);
  std::vector<int> items(20'000);
  for (int& item : items) item = static_cast<int>(random() % 3);
  Ring<int> ring;
  std::deque<int*> model;
  const auto wanted = [](const int item) { return item == 0; };
  for (std::size_t next = 0; next < items.size();) {
    for (unsigned count = random() % 40; count != 0 && next < items.size(); --count) {
      ring.push_back(&items[next]);
      model.push_back(&items[next++]);
    }
    for (unsigned count = random() % 20; count != 0 && !model.empty(); --count) {
      ASSERT_EQ(ring.pop_front(), model.front());
      model.pop_front();
    }
    const std::size_t look = random() % 100, most = random() % 12;
    std::vector<int*> taken, expected;
    const std::size_t count =
        ring.extract(look, most, wanted, [&taken](int* const item) { taken.push_back(item); });
    std::deque<int*> rest;
    for (std::size_t at = 0; at < model.size(); ++at) {
      const bool goes = at < look && expected.size() < most && wanted(*model[at]);
      if (goes) expected.push_back(model[at]); else rest.push_back(model[at]);
    }
    model = rest;
    ASSERT_EQ(taken, expected);
    ASSERT_EQ(count, expected.size());
    ASSERT_EQ(ring.size(), static_cast<std::int64_t>(model.size()));
    ASSERT_EQ(ring.front(), model.empty() ? nullptr : model.front());
    ASSERT_EQ(ring.back(), model.empty() ? nullptr : model.back());
  }
}

TEST(Ring, is_empty_again_after_it_has_wrapped_around) {
  Ring<int> ring;
  int item = 0;
  for (int i = 0; i < 10'000; ++i) {
    ring.push_back(&item);
    ASSERT_EQ(ring.pop_front(), &item);
  }
  EXPECT_EQ(ring.pop_front(), nullptr);
  EXPECT_EQ(ring.pop_back(), nullptr);
  EXPECT_EQ(ring.back(), nullptr);
}

}  // namespace
}  // namespace imbrex::base
