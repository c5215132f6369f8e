// SPDX-License-Identifier: BSD-3-Clause
#include "fiber/fiber.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cfenv>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/arch.hpp"

namespace imbrex::fiber {
namespace {

// Two fibers and the test's own stack; `trace` is what ran.
struct TwoFibers {
  StackPool stacks{64 * 1024};
  Fiber native;
  void* globals = thread_exception_globals();
  Fiber* first = nullptr;
  Fiber* second = nullptr;
  std::string trace;

  std::fenv_t floating_point;

  TwoFibers() {
    adopt_native(native);
    std::fegetenv(&floating_point);
  }
  void go(Fiber& from, Fiber& to) { switch_to(from, to, globals, &do_nothing, nullptr); }
};
TwoFibers* two = nullptr;

class FiberTest : public testing::Test {
 protected:
  void SetUp() override { two = &two_; }
  void run(Entry first, Entry second) {
    two_.first = &make_fiber(two_.stacks.take(), two_.floating_point, first);
    two_.second = &make_fiber(two_.stacks.take(), two_.floating_point, second);
    two_.go(two_.native, *two_.first);
    two_.stacks.give(destroy_fiber(*two_.first));
    two_.stacks.give(destroy_fiber(*two_.second));
  }
  TwoFibers two_;
};

// Whether the system can read there: write() fails for unreadable memory.
bool is_readable(const std::byte* const address) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const bool readable = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

// Methodology: sizes whose guards are made in each of the two ways, and more large ones than the
// second way allows.
TEST(StackPool, the_guard_of_each_stack_is_as_large_as_the_stack) {
  const struct {
    std::size_t bytes;
    int count;
  } cases[] = {{16 * 1024, 70}, {64 * 1024, 70}, {1024 * 1024, 8100}, {8 * 1024 * 1024, 70}};
  for (const auto& [bytes, count] : cases) {
    StackPool stacks(bytes);
    Stack stack;
    for (int i = 0; i < count; ++i) stack = stacks.take();
    EXPECT_FALSE(stacks.in_guard(stack.bottom));
    EXPECT_FALSE(stacks.in_guard(stack.top - 1));
    EXPECT_TRUE(is_readable(stack.bottom));
    for (std::size_t below = 1; below <= bytes; below += 4096) {
      EXPECT_TRUE(stacks.in_guard(stack.bottom - below));
      ASSERT_FALSE(is_readable(stack.bottom - below)) << bytes << " " << below;
    }
    EXPECT_FALSE(is_readable(stack.bottom - bytes));
  }
}

TEST_F(FiberTest, goes_on_where_it_was_left) {
  run(
      [] {
        two->trace += "a";
        two->go(*two->first, *two->second);
        two->trace += "c";
        two->go(*two->first, two->native);
      },
      [] {
        two->trace += "b";
        two->go(*two->second, *two->first);
      });
  EXPECT_EQ(two_.trace, "abc");
}

// Methodology: without the swap of the globals of GCC's runtime the first fiber rethrows the second
// one's exception.
TEST_F(FiberTest, rethrows_its_own_exception_after_another_fiber_threw) {
  run(
      [] {
        try {
          throw std::runtime_error("first");
        } catch (...) {
          two->go(*two->first, *two->second);
          try {
            throw;
          } catch (const std::exception& error) {
            two->trace += error.what();
          }
        }
        two->go(*two->first, *two->second);
      },
      [] {
        try {
          throw std::runtime_error("second");
        } catch (...) {
          two->go(*two->second, *two->first);
        }
        two->go(*two->second, two->native);
      });
  EXPECT_EQ(two_.trace, "first");
}

TEST_F(FiberTest, keeps_its_rounding_mode) {
  run(
      [] {
        std::fesetround(FE_UPWARD);
        two->go(*two->first, *two->second);
        two->trace += std::fegetround() == FE_UPWARD ? "up" : "lost";
        std::fesetround(FE_TONEAREST);
        two->go(*two->first, two->native);
      },
      [] {
        std::fesetround(FE_DOWNWARD);
        two->go(*two->second, *two->first);
      });
  EXPECT_EQ(two_.trace, "up");
}

// The fiber asks before and after a switch in one function, as inlined code would. If the compiler
// treated the function as constant, the second answer would be the first thread.
TEST_F(FiberTest, asks_for_its_thread_anew_after_it_has_moved) {
  two_.first = &make_fiber(two_.stacks.take(), two_.floating_point, [] {
    const pthread_t thread = base::this_thread();
    const pid_t number = base::kernel_thread_id();
    two->go(*two->first, two->native);
    if (base::is_this_thread(thread)) two->trace += "old thread ";
    if (base::kernel_thread_id() == number) two->trace += "old number ";
    two->trace += "moved";
    switch_to(*two->first, *two->second, thread_exception_globals(), &do_nothing, nullptr);
  });
  two_.go(two_.native, *two_.first);
  std::thread([this] {
    Fiber native;
    adopt_native(native);
    two_.second = &native;
    switch_to(native, *two_.first, thread_exception_globals(), &do_nothing, nullptr);
  }).join();
  two_.stacks.give(destroy_fiber(*two_.first));
  EXPECT_EQ(two_.trace, "moved");
}

TEST_F(FiberTest, runs_the_arrival_on_the_new_stack_with_the_fiber_that_was_left) {
  two_.first = &make_fiber(two_.stacks.take(), two_.floating_point, [] {
    switch_to(
        *two->first, two->native, two->globals,
        [](Fiber& left, void* argument) {
          two->trace += &left == two->first ? "left " : "other ";
          two->trace += static_cast<const char*>(argument);
        },
        const_cast<char*>("argument"));
  });
  two_.go(two_.native, *two_.first);
  EXPECT_EQ(two_.trace, "left argument");
  two_.stacks.give(destroy_fiber(*two_.first));
}

TEST(StackPool, gives_writable_stacks_with_a_guard_below_each) {
  StackPool pool(64 * 1024);
  for (int count = 0; count < 100; ++count) {
    const Stack stack = pool.take();
    EXPECT_EQ(stack.top - stack.bottom, 64 * 1024);
    std::memset(stack.bottom, 1, 4096);
    EXPECT_TRUE(pool.in_guard(stack.bottom - 1));
    EXPECT_TRUE(pool.in_guard(stack.bottom - 64 * 1024));
    EXPECT_FALSE(pool.in_guard(stack.bottom));
    EXPECT_FALSE(pool.in_guard(stack.top - 1));
  }
  int on_this_stack = 0;
  EXPECT_FALSE(pool.in_guard(&on_this_stack));
}

// A guard that begins within a page of the system is refused by the kernel, without a message.
TEST(StackPool, gives_whole_pages_of_the_system) {
  StackPool pool(20 * 1024);
  for (int count = 0; count < 4; ++count) {
    const Stack stack = pool.take();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stack.bottom) % base::page_bytes, 0u);
    EXPECT_GE(stack.top - stack.bottom, 20 * 1024);
  }
}

TEST(StackPool, reuses_stacks) {
  StackPool pool(16 * 1024);
  std::vector<Stack> stacks;
  for (int round = 0; round < 3; ++round) {
    for (int count = 0; count < 1000; ++count) stacks.push_back(pool.take());
    for (const Stack& stack : stacks) pool.give(stack);
    stacks.clear();
  }
  EXPECT_LE(pool.mapped(), 1024u);
}

}  // namespace
}  // namespace imbrex::fiber
