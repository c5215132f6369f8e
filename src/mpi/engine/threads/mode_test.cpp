// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/threads/mode.hpp"

#include <gtest/gtest.h>

namespace imbrex::mpi::threads {
namespace {

constexpr Mode every_mode[] = {Mode::automatic,     Mode::poll,
                               Mode::callback,      Mode::shared_thread,
                               Mode::dedicated_thread, Mode::monitor_thread};

TEST(Mode, has_a_plain_name_and_that_of_the_paper) {
  for (const Mode mode : every_mode) EXPECT_EQ(mode_of(name_of(mode)), mode);
  EXPECT_EQ(mode_of("EV-PO"), Mode::poll);
  EXPECT_EQ(mode_of("CB-SW"), Mode::callback);
  EXPECT_EQ(mode_of("CT-SH"), Mode::shared_thread);
  EXPECT_EQ(mode_of("CT-DE"), Mode::dedicated_thread);
  EXPECT_EQ(mode_of("CB-HW"), Mode::monitor_thread);
}

TEST(Mode, the_requested_mode_runs_without_an_obstacle) {
  for (const Mode mode : every_mode) {
    const Choice choice = choose(mode, {});
    EXPECT_EQ(choice.runs, mode);
    EXPECT_EQ(describe(choice), name_of(mode));
  }
}

TEST(Mode, without_callbacks_or_a_processor_falls_back_and_says_why) {
  const Obstacles no_callback{"no hook", ""};
  const Obstacles no_processor{"", "one processor"};
  const Obstacles neither{"no hook", "one processor"};
  EXPECT_EQ(describe(choose(Mode::callback, neither)),
            "poll (callback was asked for, but no hook)");
  EXPECT_EQ(choose(Mode::callback, no_processor).runs, Mode::callback);
  EXPECT_EQ(choose(Mode::monitor_thread, no_callback).runs, Mode::dedicated_thread);
  EXPECT_EQ(describe(choose(Mode::monitor_thread, neither)),
            "shared-thread (monitor-thread was asked for, but no hook; one processor)");
  EXPECT_EQ(choose(Mode::dedicated_thread, no_processor).runs, Mode::shared_thread);
}

TEST(Mode, a_mode_that_needs_neither_hook_nor_processor_runs_without_them) {
  const Obstacles neither{"no hook", "one processor"};
  for (const Mode mode : {Mode::automatic, Mode::poll, Mode::shared_thread}) {
    EXPECT_EQ(choose(mode, neither).runs, mode);
    EXPECT_EQ(choose(mode, neither).why, "");
  }
}

TEST(Mode, says_what_would_give_a_processor_and_not_what_was_done_already) {
  const auto contains = [](const Standing& standing, const char* const text) {
    return why_none_to_spare(standing).find(text) != std::string::npos;
  };
  EXPECT_TRUE(contains({.started = true, .processors = 8, .of_machine = 8}, "before MPI_Init"));
  EXPECT_TRUE(contains({.processors = 1, .of_machine = 8}, "bound to 1 of 8"));
  EXPECT_TRUE(contains({.processors = 1, .of_machine = 1}, "has one processor"));
  const Standing unbound{.processors = 8, .of_machine = 8, .ranks = 5};
  EXPECT_TRUE(contains(unbound, "5 ranks share 8 processors"));
  EXPECT_FALSE(contains(unbound, "--bind-to"));
  EXPECT_FALSE(contains(unbound, "MPI_Init"));
}

}  // namespace
}  // namespace imbrex::mpi::threads
