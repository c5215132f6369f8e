// SPDX-License-Identifier: BSD-3-Clause
// Habanero's words.
#include "imbrex/habanero.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace imbrex::habanero;

TEST(Habanero, async_await_begins_when_all_are_there) {
  std::atomic<int> ran{0};
  finish([&] {
    const ddf<int> one("one");
    const ddf<int> two("two");
    const ddf<int> three("three");
    const std::vector<ddf<int>> many{one, two, three};
    async_await([&] { ran += one.get(); }, one);
    async_await([&] { ran += one.get() + two.get(); }, one, two);
    async_await([&] { ran += one.get() + two.get() + three.get(); }, one, two, three);
    async_await([&] { ran += many[2].get(); }, many);
    EXPECT_EQ(ran.load(), 0);
    one.put(1);
    two.put(10);
    async([=] { three.put(100); });
    imbrex::when_all(many).wait();
    while (ran.load() != 1 + 11 + 111 + 100) yield();
  });
}

TEST(Habanero, async_await_any_begins_once) {
  std::atomic<int> ran{0};
  finish([&] {
    const std::vector<ddf<int>> some{ddf<int>("one"), ddf<int>("two")};
    async_await_any([&ran] { ++ran; }, some);
    some[1].put(1);
    some[0].put(1);
  });
  EXPECT_EQ(ran.load(), 1);
}

TEST(Habanero, a_result_or_what_is_thrown_is_in_the_future) {
  EXPECT_EQ(async_future([] { return 6 * 7; }).get(), 42);
  EXPECT_THROW(finish([] { async([] { throw std::runtime_error("of a task"); }); }),
               std::runtime_error);
}

TEST(Habanero, async_at_runs_at_the_place) {
  finish([] {
    async_at([] { EXPECT_EQ(current_place(), imbrex::place(0)); }, imbrex::place(0));
  });
}

TEST(Habanero, async_phased_registers_on_one_or_all) {
  std::atomic<int> signals{0};
  finish([&] {
    const phaser step;
    const phaser other;
    async_phased([&] {
      ++signals;
      next();
      EXPECT_EQ(signals.load(), 3);
      EXPECT_TRUE(other.is_registered());
    });
    async_phased(
        [&] {
          ++signals;
          next();
          EXPECT_FALSE(other.is_registered());
        },
        step);
    async_phased(
        [&] {
          ++signals;
          step.signal();
          EXPECT_EQ(step.mode(), signal_only);
        },
        step, signal_only);
    drop();
    while (signals.load() != 3) yield();  // the body is here as long as what it has
  });
}

TEST(Habanero, reports_name_the_line_of_the_call) {
  std::string told;
  try {
    finish([] {
      const phaser outer;
      finish([&] { async_phased([] {}, outer); });
    });
  } catch (const imbrex::Error& error) {
    told = error.what();
  }
  EXPECT_NE(told.find("habanero_test.cpp"), std::string::npos) << told;
}

}  // namespace
