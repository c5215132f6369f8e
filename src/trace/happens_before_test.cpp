// SPDX-License-Identifier: BSD-3-Clause
#include "trace/happens_before.hpp"

#include <gtest/gtest.h>

namespace imbrex::trace::happens_before {
namespace {

constexpr Code parent = 1;
constexpr Code first = 2;
constexpr Code second = 3;
int keys[2];

class HappensBefore : public testing::Test {
 protected:
  void SetUp() override {
    forget();
    (void)mark(parent);
    spawn(parent, first);
    spawn(parent, second);
  }
};

TEST_F(HappensBefore, siblings_have_no_order) {
  const std::uint64_t moment = mark(first);
  EXPECT_FALSE(is_after(second, first, moment));
  EXPECT_FALSE(is_after(parent, first, moment));
  EXPECT_TRUE(is_after(first, first, moment));
}

TEST_F(HappensBefore, a_child_comes_after_what_its_parent_did_before) {
  const std::uint64_t early = mark(parent);
  spawn(parent, 4);
  const std::uint64_t late = mark(parent);
  EXPECT_TRUE(is_after(4, parent, early));
  EXPECT_FALSE(is_after(4, parent, late));
  EXPECT_FALSE(is_after(second, parent, early));
}

TEST_F(HappensBefore, a_key_orders_what_was_done_before_it_was_told) {
  const std::uint64_t early = mark(first);
  before(first, &keys[0]);
  const std::uint64_t late = mark(first);
  after(second, &keys[1]);  // tells nothing
  EXPECT_FALSE(is_after(second, first, early));
  after(second, &keys[0]);
  EXPECT_TRUE(is_after(second, first, early));
  EXPECT_FALSE(is_after(second, first, late));
}

TEST_F(HappensBefore, order_is_passed_on) {
  const std::uint64_t moment = mark(first);
  before(first, &keys[0]);
  after(second, &keys[0]);
  spawn(second, 4);
  follow(parent, 4);
  EXPECT_TRUE(is_after(parent, first, moment));
}

TEST_F(HappensBefore, a_task_follows_everything_that_was_before) {
  const std::uint64_t early = mark(first);
  follow_everything(second);
  const std::uint64_t late = mark(first);
  EXPECT_TRUE(is_after(second, first, early));
  EXPECT_FALSE(is_after(second, first, late));
}

TEST_F(HappensBefore, unknown_and_hidden_code_is_never_blamed) {
  EXPECT_EQ(mark(unknown), 0u);
  const std::uint64_t moment = mark(first);
  EXPECT_TRUE(is_after(unknown, first, moment));
  hide(second);
  EXPECT_EQ(mark(second), 0u);
  EXPECT_TRUE(is_after(second, first, moment));
  spawn(second, 4);  // unknown code spawns it
  EXPECT_TRUE(is_after(4, first, moment));
  show(second);
  EXPECT_NE(mark(second), 0u);
  EXPECT_TRUE(is_after(77, first, mark(first)));  // a task that was never made
}

// The older half is forgotten, again and again, and its actions then precede everything.
TEST_F(HappensBefore, stays_bounded) {
  const std::uint64_t old = mark(first);
  for (int i = 0; i < 5'000'000; ++i) before(parent, &keys[0]);
  EXPECT_TRUE(is_after(second, first, old));
  const std::uint64_t young = mark(first);
  EXPECT_FALSE(is_after(second, first, young));
}

}  // namespace
}  // namespace imbrex::trace::happens_before
