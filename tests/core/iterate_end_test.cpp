// SPDX-License-Identifier: BSD-3-Clause
// The end of loops whose graph is built once: by a task that decides, by a task that fails, by what
// iterate() refuses, and by IMBREX_CHECK.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error_of.hpp"
#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class IterateEndTest : public OnRuntime {
 protected:
  // The loop works afterwards as if nothing had been.
  static void expect_intact() {
    int sum = 0;
    iterate(3, [&](std::int64_t) { task("intact").inout(sum).launch([&] { ++sum; }); });
    EXPECT_EQ(sum, 3);
  }
};
INSTANTIATE_TEST_SUITE_P(All, IterateEndTest, testing::ValuesIn(every_policy({1, 2, 8})), name_of);

class IterateCheckTest : public OnRuntime {
 protected:
  void SetUp() override {
    setenv("IMBREX_CHECK", "1", 1);
    OnRuntime::SetUp();
    unsetenv("IMBREX_CHECK");
  }
};
INSTANTIATE_TEST_SUITE_P(All, IterateCheckTest, testing::ValuesIn(every_policy({1, 2})), name_of);

class IterateAheadTest : public OnRuntime {
 protected:
  void SetUp() override {
    RuntimeOptions options = config(GetParam().workers, GetParam().policy);
    options.tasks_ahead = 0;
    start(options);
  }
};
INSTANTIATE_TEST_SUITE_P(All, IterateAheadTest, testing::ValuesIn(every_policy({1, 2})), name_of);

struct Broken : std::runtime_error {
  Broken() : std::runtime_error("broken") {}
};

// ---- by a task that decides --------------------------------------------------------------------

TEST_P(IterateEndTest, a_deciding_task_ends_the_loop_exactly_there) {
  for (const std::int64_t period : {1, 3}) {
    for (const std::int64_t last : {0, 1, 5, 11}) {
      std::array<std::atomic<int>, 12> runs{};
      iterate(12, {.period = period}, [&](std::int64_t) {
        task("decides").decides().launch([&, last](const std::int64_t i) {
          for (int yields = 0; yields < 3; ++yields) yield();
          ++runs[i];
          if (i == last) stop_iterating();
        });
        task("free").launch([&](const int i) { ++runs[i]; });
        int local = 0;
        task("chain").inout(local).launch([&](const int i) { ++runs[i]; });
      });
      for (int i = 0; i < 12; ++i) EXPECT_EQ(runs[i].load(), i <= last ? 3 : 0) << i;
    }
  }
}

// Only some iterations of the period decide: those behind them must not run ahead.
TEST_P(IterateEndTest, an_iteration_without_deciding_tasks_follows_the_last_that_has_some) {
  for (const std::int64_t last : {1, 4, 7}) {
    std::array<std::atomic<int>, 12> runs{};
    iterate(12, {.period = 3}, [&](const std::int64_t offset) {
      task("free").launch([&](const int i) { ++runs[i]; });
      if (offset != 1) return;
      task("decides").decides().launch([last](const std::int64_t i) {
        for (int yields = 0; yields < 20; ++yields) yield();
        if (i == last) stop_iterating();
      });
    });
    for (int i = 0; i < 12; ++i) EXPECT_EQ(runs[i].load(), i <= last ? 1 : 0) << i;
  }
}

TEST_P(IterateEndTest, all_tasks_follow_all_that_decide_in_the_iteration_before) {
  std::atomic<int> decided = 0, wrong = 0;
  iterate(20, [&](std::int64_t) {
    for (int decider = 0; decider < 3; ++decider) {
      task("decides").decides().launch([&] {
        yield();
        ++decided;
      });
    }
    for (int each = 0; each < 3; ++each) {
      task("follows").launch([&](const int i) {
        if (decided < 3 * i) ++wrong;
      });
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(IterateEndTest, several_tasks_may_stop_one_iteration) {
  std::atomic<int> runs = 0;
  iterate(100, [&](std::int64_t) {
    for (int each = 0; each < 3; ++each) {
      task("stops").decides().launch([&](const int i) {
        ++runs;
        if (i == 3) stop_iterating();
        if (i == 3) stop_iterating();  // no effect a second time
      });
    }
  });
  EXPECT_EQ(runs.load(), 12);
}

TEST_P(IterateEndTest, a_loop_that_stops_gives_back_mutexes_and_accesses) {
  int object = 0, value = 0;
  iterate(1000, [&](std::int64_t) {
    for (int each = 0; each < 4; ++each) {
      task("exclusive").mutexinoutset(object).launch([&] { yield(); });
    }
    task("decides").decides().in(value).launch([](const int i) {
      if (i == 10) stop_iterating();
    });
    task("write").inout(value).launch([&] { ++value; });
  });
  EXPECT_EQ(value, 11);
  task("after").mutexinoutset(object).inout(value).launch([] {});
  taskwait();
}

// ---- by a task that fails ----------------------------------------------------------------------

TEST_P(IterateEndTest, an_error_names_task_and_iteration_and_no_later_one_begins) {
  int value = 0;
  const std::string text = error_of([&] {
    iterate(100, [&](std::int64_t) {
      task("update").inout(value).launch([&](const int i) {
        ++value;
        if (i == 7) throw Error("imbrex test: diverged");
      });
    });
  });
  EXPECT_TRUE(has(text, {"diverged"}));
  EXPECT_TRUE(has(text, {"iteration 7"}));
  EXPECT_TRUE(has(text, {"\"update\""}));
  EXPECT_EQ(value, 8);
  expect_intact();
}

TEST_P(IterateEndTest, another_exception_keeps_its_type) {
  int value = 0;
  const auto loop = [&] {
    iterate(10, [&](std::int64_t) {
      task("fails").inout(value).launch([&] {
        if (++value == 4) throw Broken();
      });
    });
  };
  EXPECT_THROW(loop(), Broken);
  EXPECT_EQ(value, 4);
  expect_intact();
}

TEST_P(IterateEndTest, a_task_behind_a_failure_does_not_run_but_clean_up_does) {
  int x = 0, y = 0, z = 0;
  std::atomic<int> reads = 0, cleans = 0, apart = 0;
  const auto loop = [&] {
    iterate(10, [&](std::int64_t) {
      task("load").out(x).launch([&](const int i) {
        if (i == 3) throw Broken();
      });
      task("read").in(x).out(y).launch([&] { ++reads; });
      task("next").in(y).launch([&] { ++reads; });
      task("clean up").inout(x).run_after_failure().launch([&] { ++cleans; });
      task("apart").inout(z).launch([&](const int i) {
        if (i <= 3) ++apart;
      });
    });
  };
  EXPECT_THROW(loop(), Broken);
  EXPECT_EQ(reads.load(), 6);
  EXPECT_EQ(cleans.load(), 4);
  EXPECT_EQ(apart.load(), 4);
  expect_intact();
}

TEST_P(IterateEndTest, no_iteration_begins_once_a_task_has_thrown) {
  std::atomic<bool> thrown = false;
  std::atomic<int> late = 0;
  Promise<void> gate;
  const auto loop = [&] {
    iterate(1000, [&](std::int64_t) {
      task("fails").launch([&](const int i) {
        if (i == 0) gate.future().get();
        if (i == 1) throw Broken();
      });
      task("looks").launch([&](const int i) {
        if (i == 2) gate.set();
        yield();
        if (i > 2 && thrown) ++late;
      });
      task("notes").launch([&] { std::this_thread::yield(); });
    });
  };
  EXPECT_THROW(loop(), Broken);
  thrown = true;
  let_others_run();
  EXPECT_EQ(late.load(), 0);
}

// Methodology: when the task fails, others of the loop are ready, and have a mutex.
TEST_P(IterateEndTest, tasks_that_are_ready_when_another_fails_give_back_their_mutexes) {
  for (int round = 0; round < scaled(10) + 2; ++round) {
    int object = 0;
    std::atomic<int> begun = 0;
    Promise<void> enough;
    const auto loop = [&] {
      iterate(1'000'000, [&](std::int64_t) {
        for (int each = 0; each < 5; ++each) {
          task("exclusive").mutexinoutset(object).launch([&] {
            if (++begun == 20) enough.set();
            yield();
          });
        }
        task("fails").launch([&] {
          enough.future().get();
          throw Broken();
        });
      });
    };
    EXPECT_THROW(loop(), Broken);
    int after = 0;
    task("after").mutexinoutset(object).launch([&] { ++after; });
    taskwait();
    EXPECT_EQ(after, 1);
  }
}

TEST_P(IterateEndTest, an_exception_of_a_child_ends_the_loop_after_its_iteration) {
  for (const bool awaited : {true, false}) {
    int value = 0;
    std::atomic<int> others = 0;
    const auto loop = [&] {
      iterate(100, [&](std::int64_t) {
        task("parent").inout(value).launch([&](const int i) {
          ++value;
          const auto spawn_child = [i] {
            task("child").launch([i] {
              yield();
              if (i == 5) throw Broken();
            });
          };
          awaited ? finish(spawn_child) : spawn_child();
        });
        task("other").launch([&](const int i) {
          if (i <= 5) ++others;
        });
      });
    };
    EXPECT_THROW(loop(), Broken);
    EXPECT_EQ(value, 6);
    EXPECT_EQ(others.load(), 6);
  }
  expect_intact();
}

TEST_P(IterateEndTest, two_failures_are_counted_and_one_is_thrown) {
  std::array<Promise<void>, 2> begun;
  const std::string text = error_of([&] {
    iterate(10, [&](std::int64_t) {
      for (int each = 0; each < 2; ++each) {
        task("fails").launch([&, each](const int i) {
          if (i != 2) return;
          begun[each].set();
          begun[1 - each].future().get();
          throw Error("imbrex test: one of two");
        });
      }
    });
  });
  EXPECT_TRUE(has(text, {"one of two"}));
  EXPECT_TRUE(has(text, {"iteration 2"}));
  EXPECT_TRUE(has(text, {"2"}));
  expect_intact();
}

TEST_P(IterateEndTest, a_failure_reaches_what_is_held_or_released_early) {
  int held = 0, early = 0, kept = 0;
  std::vector<Promise<void>> events(10);
  std::atomic<int> wrong = 0, early_runs = 0;
  const auto loop = [&] {
    iterate(10, [&](std::int64_t) {
      task("fails").out(held, early, kept).launch([&](const int i) {
        release(early);
        release_after(events[static_cast<std::size_t>(i)].future(), held);
        if (i == 2) throw Broken();
      });
      // The held access ends after the task, which has failed by then.
      task("ends").in(kept).run_after_failure().launch([&](const int i) {
        events[static_cast<std::size_t>(i)].set();
      });
      task("reads held").in(held).launch([&](const int i) {
        if (i >= 2) ++wrong;
      });
      task("reads early").in(early).launch([&](const int i) {
        if (i <= 2) ++early_runs;
      });
    });
  };
  EXPECT_THROW(loop(), Broken);
  EXPECT_EQ(wrong.load(), 0);
  expect_intact();
}

// With a range in the loop, "second" followed "first" although "reads" lies between them; the first
// of the next iteration joins the second's set, so it may run before the second has begun.
TEST_P(IterateEndTest, neighbours_of_a_set_of_two_iterations_do_not_count_twice) {
  int set = 0, slow = 0;
  std::array<int, 4> whole{};
  std::atomic<int> ended = 0, early = 0;
  iterate(20, [&](std::int64_t) {
    task("range").in(range(whole.data(), 4)).launch([] {});
    task("first").inoutset(set).launch([] {});
    task("reads").in(set).launch([] {});
    task("slow").inout(slow).launch([&] {
      for (int turn = 0; turn < 10; ++turn) yield();
      ++ended;
    });
    task("second").in(slow).inoutset(set).launch([&](const int i) {
      if (ended <= i) ++early;
    });
  });
  EXPECT_EQ(early.load(), 0);
  expect_intact();
}

// The last round is shorter, so "quick" ends with the first round, before "slow" has decided.
TEST_P(IterateEndTest, a_task_whose_loop_is_over_does_not_decide_for_others) {
  std::atomic<bool> decided = false;
  std::atomic<int> early = 0;
  iterate(3, {.period = 2}, [&](const std::int64_t i) {
    if (i == 0) {
      task("next").launch([&](const int now) {
        if (now == 2 && !decided) ++early;
      });
      return;
    }
    task("quick").decides().launch([] {});
    task("slow").decides().launch([&] {
      for (int turn = 0; turn < 50; ++turn) yield();
      decided = true;
    });
  });
  EXPECT_TRUE(decided);
  EXPECT_EQ(early.load(), 0);
  expect_intact();
}

// "late" of iteration 0 still runs when a task of iteration 1 fails that it lets go early.
TEST_P(IterateEndTest, a_failure_is_kept_for_an_instance_that_has_not_begun) {
  int x = 0, y = 0, reads = 0;
  Promise<void> failing;
  const auto loop = [&] {
    iterate(5, [&](std::int64_t) {
      task("fails").inout(x).launch([&](const int i) {
        if (i == 0) return;
        failing.set();
        throw Broken();
      });
      task("late").inout(x).out(y).launch([&](const int i) {
        release(x);
        if (i > 0) return;
        failing.future().get();
        let_others_run();
      });
      task("reads").in(y).launch([&] { ++reads; });
    });
  };
  EXPECT_THROW(loop(), Broken);
  EXPECT_EQ(reads, 1);
  expect_intact();
}

TEST_P(IterateEndTest, an_event_that_fails_ends_the_loop) {
  int buffer = 0;
  std::atomic<int> reads = 0;
  const auto loop = [&] {
    iterate(10, [&](std::int64_t) {
      task("receive").out(buffer).launch([&](const int i) {
        const Promise<void> message;
        release_after(message.future(), buffer);
        task("message").launch([message, i] {
          yield();
          if (i == 4) {
            message.set_exception(std::make_exception_ptr(Broken()));
          } else {
            message.set();
          }
        });
      });
      task("read").in(buffer).launch([&] { ++reads; });
    });
  };
  EXPECT_THROW(loop(), Broken);
  EXPECT_EQ(reads.load(), 4);
  expect_intact();
}

TEST_P(IterateEndTest, a_sibling_that_has_failed_before_keeps_the_loop_from_running) {
  for (const bool early : {true, false}) {
    int value = 0;
    std::atomic<int> runs = 0;
    Promise<void> gate;
    const auto both = [&] {
      finish([&] {
        task("before").out(value).launch([&] {
          gate.future().get();
          throw Broken();
        });
        if (early) {
          gate.set();
          taskwait();
        } else {
          task("sets").launch([&] { gate.set(); });
        }
        try {
          iterate(5, [&](std::int64_t) {
            task("loop").inout(value).launch([&] { ++runs; });
            task("follows").in(value).launch([&] { ++runs; });
          });
        } catch (const DependencyFailed&) {
          runs += 100;
        }
      });
    };
    EXPECT_THROW(both(), Broken);
    EXPECT_EQ(runs.load() % 100, 0);
  }
  expect_intact();
}

TEST_P(IterateEndTest, captured_values_are_destroyed_once_after_the_loop) {
  struct Counted {
    explicit Counted(std::atomic<int>& count) : live(&count) { ++*live; }
    Counted(const Counted& other) : live(other.live) { ++*live; }
    ~Counted() { --*live; }
    std::atomic<int>* live;
  };
  std::atomic<int> live = 0, wrong = 0;
  const auto loop = [&](const bool fails, const bool stops) {
    iterate(10, {.period = 2}, [&](std::int64_t) {
      task("counted").decides().launch([&, fails, stops, held = Counted(live)](const int i) {
        if (held.live->load() != 4) ++wrong;
        if (i == 4 && fails) throw Broken();
        if (i == 4 && stops) stop_iterating();
      });
      task("counted").launch([held = std::make_unique<Counted>(live)] { yield(); });
    });
  };
  loop(false, false);
  EXPECT_EQ(live.load(), 0);
  loop(false, true);
  EXPECT_EQ(live.load(), 0);
  EXPECT_THROW(loop(true, false), Broken);
  EXPECT_EQ(live.load(), 0);
  EXPECT_EQ(wrong.load(), 0);
}

// ---- what is refused ---------------------------------------------------------------------------

TEST_P(IterateEndTest, a_task_that_cannot_repeat_is_refused_by_name) {
  int value = 0, ran = 0;
  auto future = task("earlier").spawn([] { return 1; });
  const auto refusal = [&](auto create) {
    return error_of([&] {
      iterate(3, [&](std::int64_t) {
        task("fine").inout(value).launch([&] { ++ran; });
        create();
      });
    });
  };
  EXPECT_TRUE(has(refusal([] { task("spawned").spawn([] {}); }), {"\"spawned\"", "iterate()"}));
  EXPECT_TRUE(has(refusal([&] { task("follows").in(future).launch([] {}); }),
                  {"\"follows\"", "iterate()", "future"}));
  EXPECT_TRUE(has(refusal([] { finish([] {}); }), {"finish()", "iterate()"}));
  EXPECT_TRUE(has(refusal([] { taskwait(); }), {"taskwait()", "iterate()"}));
  EXPECT_TRUE(has(refusal([] { iterate(1, [](std::int64_t) {}); }), {"iterate()", "iterate()"}));
  EXPECT_TRUE(has(refusal([] {
                    const Phaser phaser(signal_wait);
                    task("in phases").phased(phaser).launch([] {});
                  }),
                  {"\"in phases\"", "iterate()", "phaser"}));
  EXPECT_TRUE(has(refusal([&] { task("twice").in(value).out(value).launch([] {}); }),
                  {"\"twice\""}));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(future.get(), 1);
  expect_intact();
}

TEST_P(IterateAheadTest, tasks_are_looked_at_also_if_any_number_may_be_ahead) {
  EXPECT_TRUE(has(error_of([] {
                    iterate(3, [](std::int64_t) { task("spawned").spawn([] {}); });
                  }),
                  {"\"spawned\"", "iterate()"}));
  std::array<int, 100> values{};
  iterate(10, [&](std::int64_t) {
    for (int& value : values) task("one").inout(value).launch([&value] { ++value; });
  });
  for (const int value : values) EXPECT_EQ(value, 10);
}

TEST_P(IterateEndTest, a_period_below_one_is_refused) {
  const auto body = [](std::int64_t) { FAIL() << "the body was called"; };
  EXPECT_TRUE(has(error_of([&] { iterate(3, {.period = 0}, body); }),
                  {"iterate_end_test", ".period = 0"}));
  EXPECT_TRUE(has(error_of([&] { iterate(3, {.period = -5}, body); }), {".period = -5"}));
  EXPECT_TRUE(has(error_of([&] { iterate(3, {.period = INT64_MAX}, body); }), {".period"}));
  expect_intact();
}

TEST_P(IterateEndTest, a_body_without_tasks_is_called_for_one_period_and_ends_the_loop) {
  int called = 0;
  iterate(9, {.period = 2}, [&called](std::int64_t) { ++called; });
  EXPECT_EQ(called, std::getenv("IMBREX_CHECK") != nullptr ? 4 : 2);  // it compares two periods
}

TEST_P(IterateEndTest, a_body_that_throws_runs_nothing) {
  int ran = 0;
  const auto loop = [&] {
    iterate(3, {.period = 2}, [&](const std::int64_t i) {
      task("recorded").inout(ran).launch([&ran, held = std::make_unique<int>(1)] { ran += *held; });
      if (i == 1) throw Broken();
    });
  };
  EXPECT_THROW(loop(), Broken);
  EXPECT_EQ(ran, 0);
  expect_intact();
}

TEST_P(IterateEndTest, words_of_a_loop_are_refused_elsewhere) {
  EXPECT_TRUE(has(error_of([] { task("decides").decides().launch([] {}); }),
                  {"decides()", "iterate()"}));
  EXPECT_TRUE(has(error_of([] { task("number").launch([](int) {}); }), {"launch()", "iterate()"}));
  EXPECT_TRUE(has(error_of([] { stop_iterating(); }), {"stop_iterating()"}));
  std::string in_task, in_child, in_thread;
  iterate(1, [&](std::int64_t) {
    task("does not decide").launch([&] { in_task = error_of([] { stop_iterating(); }); });
    task("decides").decides().launch([&] {
      task("child").spawn([&] { in_child = error_of([] { stop_iterating(); }); }).get();
      std::thread([&] { in_thread = error_of([] { stop_iterating(); }); }).join();
      const std::string launched = error_of([] { task("x").launch([](int) {}); });
      EXPECT_TRUE(has(launched, {"launch()"}));
    });
  });
  EXPECT_TRUE(has(in_task, {"\"does not decide\"", "decides()"}));
  EXPECT_TRUE(has(in_child, {"\"child\""}));
  EXPECT_TRUE(has(in_thread, {"stop_iterating()"}));
}

// ---- IMBREX_CHECK ------------------------------------------------------------------------------

TEST_P(IterateCheckTest, a_second_period_with_equal_tasks_is_no_error) {
  struct Padded {
    char letter;
    double number;
    short half;
  };
  int value = 0, calls = 0;
  std::vector<int> data(8);
  iterate(7, {.period = 3}, [&](const std::int64_t i) {
    ++calls;
    EXPECT_LT(i, 6);
    unsigned char noise[64];
    std::fill_n(noise, sizeof noise, static_cast<unsigned char>(0x11 * (calls + 1)));
    std::atomic_signal_fence(std::memory_order_seq_cst);
    Padded padded;
    padded.letter = 'a';
    padded.number = 1.5;
    padded.half = 3;
    task("padded").inout(value).launch([&value, padded] { value += padded.half; });
    const std::string text = "a text that is long enough for the heap: " + std::to_string(i);
    task("ranges").in(range(data)).mutexinoutset(calls).launch([text] { (void)text.size(); });
    task("number").decides().launch([](std::int64_t) {});
  });
  EXPECT_EQ(value, 21);
  EXPECT_EQ(calls, 6);
}

TEST_P(IterateCheckTest, a_last_period_that_is_shorter_is_compared_as_far_as_it_goes) {
  std::vector<std::int64_t> calls;
  int runs = 0;
  iterate(4, {.period = 3}, [&](const std::int64_t i) {
    calls.push_back(i);
    task("step").inout(runs).launch([&runs] { ++runs; });
  });
  EXPECT_EQ(calls, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(runs, 4);
}

TEST_P(IterateCheckTest, the_first_task_that_differs_is_named) {
  int a = 0, b = 0, ran = 0;
  const auto difference = [&](auto create) {
    return error_of([&] {
      iterate(10, [&](const std::int64_t i) {
        task("same").launch([&ran] { ++ran; });
        create(i);
      });
    });
  };
  EXPECT_TRUE(has(difference([](std::int64_t i) {
                    task(std::string(i == 0 ? "one" : "two")).launch([] {});
                  }),
                  {"\"one\"", "task 2", "\"two\""}));
  EXPECT_TRUE(has(difference([&](std::int64_t i) {
                    task("accesses").inout(i == 0 ? a : b).launch([] {});
                  }),
                  {"\"accesses\"", "accesses"}));
  EXPECT_TRUE(has(difference([&](std::int64_t i) {
                    if (i == 0) {
                      task("kinds").in(a).launch([] {});
                    } else {
                      task("kinds").out(a).launch([] {});
                    }
                  }),
                  {"\"kinds\""}));
  EXPECT_TRUE(has(difference([](std::int64_t i) { task("captures").launch([i] { (void)i; }); }),
                  {"\"captures\"", "captured"}));
  EXPECT_TRUE(has(difference([](std::int64_t i) {
                    task("more").launch([] {});
                    if (i > 0) task("additional").launch([] {});
                  }),
                  {"\"additional\""}));
  EXPECT_TRUE(has(difference([](std::int64_t i) {
                    if (i == 0) task("missing").launch([] {});
                  }),
                  {"2 in the first", "1 in the second"}));
  EXPECT_TRUE(has(difference([](std::int64_t i) {
                    TaskBuilder builder = task("decides");
                    if (i == 0) (void)builder.decides();
                    builder.launch([] {});
                  }),
                  {"\"decides\""}));
  EXPECT_EQ(ran, 0);
}

TEST_P(IterateCheckTest, a_task_of_another_iteration_of_the_period_differs) {
  const std::string text = error_of([] {
    iterate(10, {.period = 2}, [](const std::int64_t i) {
      if (i != 2) task("step").launch([] {});
      if (i == 3) task("step").launch([] {});
    });
  });
  EXPECT_TRUE(has(text, {"\"step\"", "iteration"}));
}

}  // namespace
}  // namespace imbrex::test
