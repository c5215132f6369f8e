// SPDX-License-Identifier: BSD-3-Clause
// Named events, triggers and progress functions.
#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class TriggerTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, TriggerTest, testing::ValuesIn(every_setup()), name_of);

// Returns the text of the error that finish(body) throws; empty if it throws none.
template <class F>
std::string error_of(F&& body) {
  try {
    finish(body);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_P(TriggerTest, a_task_that_names_an_event_runs_after_its_trigger_and_not_before) {
  std::atomic<bool> triggered{false};
  std::atomic<int> ran{0};
  finish([&] {
    for (int i = 0; i < 10; ++i) {
      task("border").in(named("ghost_done")).launch([&] {
        EXPECT_TRUE(triggered.load());
        ++ran;
      });
    }
    let_others_run();
    EXPECT_EQ(ran.load(), 0);
    triggered.store(true);
    trigger("ghost_done");
  });
  EXPECT_EQ(ran.load(), 10);
}

TEST_P(TriggerTest, a_trigger_may_come_before_the_task_that_names_its_event) {
  bool ran = false;
  finish([&] {
    trigger("early");
    task("border").in(named("early")).launch([&] { ran = true; });
  });
  EXPECT_TRUE(ran);
}

TEST_P(TriggerTest, a_task_may_trigger_and_numbers_tell_events_of_one_name_apart) {
  constexpr int count = 50;
  std::array<std::atomic<bool>, count> ran = {};
  finish([&] {
    for (int i = 0; i < count; ++i) {
      std::atomic<bool>& mine = ran[static_cast<std::size_t>(i)];
      task("waits").in(named("step", i)).launch([&mine] { mine = true; });
    }
    for (int i = count - 1; i >= 0; --i) {
      task("triggers").launch([i] { trigger("step", i); });
    }
  });
  for (const std::atomic<bool>& one : ran) EXPECT_TRUE(one.load());
}

TEST_P(TriggerTest, a_named_event_is_a_future) {
  finish([] {
    const Future<void> both = when_all(named("left"), named("right"));
    task("triggers").launch([] {
      trigger("left");
      trigger("right");
    });
    both.get();
    EXPECT_TRUE(named("left").ready());
  });
}

TEST_P(TriggerTest, each_finish_uses_a_name_anew) {
  int ran = 0;
  for (int step = 0; step < scaled(1000); ++step) {
    finish([&] {
      task("border").in(named("ghost_done")).launch([&] { ++ran; });
      EXPECT_FALSE(named("ghost_done").ready());
      task("triggers").launch([] { trigger("ghost_done"); });
    });
  }
  EXPECT_EQ(ran, scaled(1000));
}

TEST_P(TriggerTest, a_name_means_one_event_in_all_tasks_of_the_finish) {
  int ran = 0;
  finish([&] {
    task("border").in(named("shared")).launch([&] { ++ran; });
    task("outer").launch([] {
      task("inner").launch([] { trigger("shared"); });
    });
  });
  EXPECT_EQ(ran, 1);
}

// Each task spawns the next and ends: the scopes of ancestors go while descendants run.
TEST_P(TriggerTest, a_chain_of_tasks_that_have_ended_belongs_to_the_finish_around_them) {
  struct Chain {
    static void go(int more) {
      if (more % 10 == 0) trigger("link", more);
      if (more > 0) task("next").launch([more] { go(more - 1); });
    }
  };
  static constexpr int links = scaled(1000);
  std::atomic<int> ran{0};
  finish([&] {
    for (int i = 0; i <= links; i += 10) {
      task("waits").in(named("link", i)).launch([&ran] { ++ran; });
    }
    task("first").launch([] { Chain::go(links); });
  });
  EXPECT_EQ(ran.load(), links / 10 + 1);
  const std::string text = error_of([] {
    task("first").launch([] { Chain::go(links); });
  });
  EXPECT_TRUE(contains(text, "by the end of the finish() at ")) << text;
}

TEST_P(TriggerTest, a_thread_of_the_program_may_trigger) {
  bool ran = false;
  std::thread thread;
  finish([&] {
    task("border").in(named("from outside")).launch([&] { ran = true; });
    thread = std::thread([] { trigger("from outside"); });
  });
  thread.join();
  EXPECT_TRUE(ran);
}

TEST_P(TriggerTest, a_second_trigger_throws_and_names_both_places) {
  const std::string text = error_of([] {
    task("border").in(named("once")).launch([] {});
    trigger("once");
    task("second").launch([] { trigger("once"); });
  });
  EXPECT_TRUE(contains(text, "\"once\" was triggered twice, first by \"main\"")) << text;
  EXPECT_TRUE(contains(text, "then by \"second\"")) << text;
  EXPECT_TRUE(contains(text, "named(name, iteration)")) << text;
}

TEST_P(TriggerTest, a_trigger_of_a_name_that_nobody_names_is_an_error_of_its_finish) {
  const std::string text = error_of([] {
    task("border").in(named("ghost_done")).launch([] {});
    task("triggers").launch([] {
      trigger("ghost_done");
      trigger("gost_done", 7);
    });
  });
  EXPECT_TRUE(contains(text, "\"triggers\" (")) << text;
  EXPECT_TRUE(contains(text, "triggered the event \"gost_done\" 7, which no task")) << text;
  EXPECT_TRUE(contains(text, "misspelt")) << text;
}

TEST_P(TriggerTest, the_end_of_a_finish_gives_up_names_that_no_task_took) {
  Future<void> left;
  finish([&] { left = named("never"); });
  EXPECT_THROW(left.get(), Error);
}

TEST_P(TriggerTest, a_progress_function_is_called_until_it_returns_0_and_not_after) {
  std::atomic<int> calls{0};
  std::atomic<int> at_once{0};
  bool ran = false;
  finish([&] {
    progress([&] {
      EXPECT_EQ(++at_once, 1) << "one thread at a time";
      --at_once;
      if (++calls < 20) return 1;
      trigger("ghost_done");
      return 0;
    });
    task("border").in(named("ghost_done")).launch([&] { ran = true; });
  });
  EXPECT_TRUE(ran);
  EXPECT_EQ(calls.load(), 20);
  let_others_run();
  EXPECT_EQ(calls.load(), 20);
}

TEST_P(TriggerTest, a_finish_ends_after_its_progress_function_has_returned_0) {
  std::atomic<int> calls{0};
  finish([&] { progress([&] { return ++calls < 100; }); });
  EXPECT_EQ(calls.load(), 100);
}

TEST_P(TriggerTest, busy_workers_call_it_between_tasks) {
  std::atomic<int> calls{0};
  std::atomic<bool> over{false};
  finish([&] {
    progress([&] {
      ++calls;
      return over.load() ? 0 : 1;
    });
    using Clock = std::chrono::steady_clock;
    struct Chain {  // each launches the next; a processor may be away for seconds
      static void go(std::atomic<int>& calls, const Clock::time_point give_up) {
        const auto end = Clock::now() + std::chrono::microseconds(50);
        while (Clock::now() < end) {
        }
        if (Clock::now() < give_up && calls.load() < 3) {
          task("next").launch([&calls, give_up] { go(calls, give_up); });
        }
      }
    };
    // Not taskwait(): those that tasks of the chain launch are no children of this one.
    finish([&calls] { Chain::go(calls, Clock::now() + std::chrono::seconds(60)); });
    over.store(true);
  });
  EXPECT_GE(calls.load(), 3);
}

TEST_P(TriggerTest, several_progress_functions_of_nested_scopes_run_side_by_side) {
  std::atomic<int> outer_calls{0};
  std::atomic<int> steps{0};
  std::atomic<int> step_now{0};
  finish([&] {
    progress([&] {
      ++outer_calls;
      return steps.load() < 20 ? 1 : 0;
    });
    for (int step = 0; step < 20; ++step) {
      finish([&] {
        progress([&] {
          trigger("left");
          return 0;
        });
        progress([&] {
          trigger("right");
          return 0;
        });
        task("both").in(named("left"), named("right")).launch([&] { ++step_now; });
      });
      ++steps;
    }
  });
  EXPECT_EQ(step_now.load(), 20);
  EXPECT_GT(outer_calls.load(), 0);
}

TEST_P(TriggerTest, finish_rethrows_the_error_of_a_progress_function_and_its_tasks_do_not_run) {
  std::atomic<int> ran{0};
  struct Broken {};
  EXPECT_THROW(finish([&] {
                 task("border").in(named("left")).launch([&] { ++ran; });
                 auto inner = task("inner").spawn([&] {
                   finish([&] { task("deep").in(named("deep")).launch([&] { ++ran; }); });
                 });
                 progress([]() -> int { throw Broken(); });
                 inner.wait();
                 // Named after the failure.
                 task("late").in(named("right")).launch([&] { ++ran; });
                 task("does not name").launch([&] { ran += 10; });
               }),
               Broken);
  EXPECT_EQ(ran.load(), 10);
  // Outside nothing has changed.
  finish([&] {
    task("border").in(named("left")).launch([&] { ++ran; });
    trigger("left");
  });
  EXPECT_EQ(ran.load(), 11);
}

TEST_P(TriggerTest, in_a_progress_function_waiting_and_spawning_are_refused) {
  Promise<void> never;
  const std::string waits = error_of([&] {
    progress([&] {
      never.future().get();
      return 0;
    });
  });
  EXPECT_TRUE(contains(waits, "inside the progress function registered at ")) << waits;
  const std::string spawns = error_of([] {
    progress([] {
      task("child").launch([] {});
      return 0;
    });
  });
  EXPECT_TRUE(contains(spawns, "inside the progress function registered at ")) << spawns;
}

TEST_P(TriggerTest, outside_of_a_finish_there_is_no_progress_function) {
  try {
    progress([] { return 0; });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "which has no finish() open")) << error.what();
  }
}

TEST_P(TriggerTest, its_memory_is_given_back_when_the_scope_ends) {
  const auto held = std::make_shared<int>(0);
  finish([&] { progress([held] { return 0; }); });
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace imbrex::test
