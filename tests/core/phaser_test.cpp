// SPDX-License-Identifier: BSD-3-Clause
// Phasers one by one: what each operation does, where they end, and every misuse.
// Random programs on them: fuzz/phaser_fuzz.cpp.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error_of.hpp"
#include "core/on_runtime.hpp"
#include "imbrex/phaser.hpp"

namespace imbrex::test {
namespace {

class PhaserTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, PhaserTest, testing::ValuesIn(every_policy({1, 2, 8})), name_of);
class PhaserWideTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, PhaserWideTest,
                         testing::ValuesIn(setups({64}, {"", "fifo", "seeded:3"})), name_of);

// ---- barriers --------------------------------------------------------------------------------

template <class Test>
void check_barrier(const int tasks, const int phases) {
  std::vector<std::atomic<int>> steps(static_cast<std::size_t>(tasks));
  std::atomic<int> wrong{0};
  finish([&] {
    Phaser step(signal_wait);
    for (int i = 0; i < tasks; ++i) {
      task("part").phased(step).launch([&, step, i] {
        for (int phase = 1; phase <= phases; ++phase) {
          steps[static_cast<std::size_t>(i)] = phase;
          Phaser::next_all();
          for (const std::atomic<int>& other : steps) wrong += other < phase ? 1 : 0;
          Phaser::next_all();
        }
      });
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(PhaserTest, nobody_passes_before_all_have_come) {
  check_barrier<PhaserTest>(9, scaled(40));
}
TEST_P(PhaserWideTest, nobody_passes_before_all_have_come) {
  check_barrier<PhaserWideTest>(150, scaled(80));
}

// Methodology: tasks advance, and each now and then registers a child, which takes some phases and
// leaves: by its end, by drop(), before or after its signal, or by an exception. A counter for each
// phase says how many tasks have come to it. A task that leaves a phase checks that all tasks
// registered in it had come. Children are counted before they are registered.
void come_and_go(const int tasks, const int phases, const unsigned seed) {
  struct Count {
    std::atomic<int> expected{0}, come{0};
  };
  std::vector<Count> counts(static_cast<std::size_t>(phases) + 1);
  std::atomic<int> wrong{0};
  const auto advance = [&](const Phaser& step, const int phase) {
    Count& count = counts[static_cast<std::size_t>(phase)];
    ++count.come;
    step.next();
    wrong += count.come < count.expected ? 1 : 0;
  };
  const auto expect = [&](const int first, const int last) {
    for (int phase = first; phase < last; ++phase) {
      ++counts[static_cast<std::size_t>(phase)].expected;
    }
  };
  const auto child = [&](const Phaser& step, const int first, const int last, const unsigned way) {
    for (int phase = first; phase < last; ++phase) advance(step, phase);
    if (way == 0) step.signal();
    if (way <= 1) step.drop();
    if (way == 2) throw std::domain_error("as it should");
  };
  try {
    finish([&] {
      Phaser step(signal_wait);
      expect(0, phases);
      for (int i = 1; i < tasks; ++i) {
        expect(0, phases);
        task("part").phased(step).launch([&, step, i] {
          std::minstd_rand random(seed + static_cast<unsigned>(i));
          for (int phase = 0; phase < phases; ++phase) {
            const auto way = static_cast<unsigned>(random() % 16);
            if (way < 4) {
              const int last = std::min(phases, phase + static_cast<int>(random() % 4));
              expect(phase, last);
              task("child").phased(step).launch([&, step, phase, last, way] {
                child(step, phase, last, way);
              });
            }
            advance(step, phase);
          }
        });
      }
      for (int phase = 0; phase < phases; ++phase) advance(step, phase);
    });
  } catch (const std::domain_error&) {  // of a child
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(PhaserTest, tasks_may_come_and_go_while_others_advance) {
  come_and_go(3, scaled(60), 1);
  come_and_go(4, scaled(60), 2);
  come_and_go(9, scaled(60), 3);
}
TEST_P(PhaserWideTest, tasks_may_come_and_go_while_others_advance) {
  come_and_go(70, scaled(30), 1);
}

TEST_P(PhaserTest, one_task_alone_never_waits) {
  finish([] {
    Phaser step(signal_wait);
    for (int i = 0; i < 100; ++i) Phaser::next_all();
    EXPECT_EQ(step.phase(), 100u);
    EXPECT_TRUE(step.is_registered());
    step.drop();
    EXPECT_FALSE(step.is_registered());
  });
}

TEST_P(PhaserTest, a_task_is_registered_where_it_is_spawned) {
  // The child has not begun when its parent waits for its signal.
  bool signalled = false;
  finish([&] {
    Phaser step(signal_wait);
    task("child").phased(step).launch([&, step] {
      yield();
      signalled = true;
      Phaser::signal_all();
    });
    Phaser::next_all();
    EXPECT_TRUE(signalled);
  });
}

TEST_P(PhaserTest, a_child_has_signalled_what_its_parent_has) {
  finish([] {
    Phaser step(signal_wait);
    step.signal();
    task("child").phased(step).launch([&, step] {
      EXPECT_EQ(step.phase(), 1u);  // the phase ended by its parent's signal alone
      step.signal();                // of phase 0, once more: no effect
      step.wait();
      step.next();
      EXPECT_EQ(step.phase(), 2u);
    });
    step.wait();
    step.next();
  });
}

TEST_P(PhaserTest, a_second_signal_in_one_phase_changes_nothing) {
  finish([] {
    Phaser step(signal_wait);
    task("other").phased(step).launch([&, step] {
      for (int i = 0; i < 3; ++i) {
        step.signal();
        step.signal();
        step.wait();
      }
    });
    for (int i = 0; i < 3; ++i) {
      step.next();
      EXPECT_EQ(step.phase(), static_cast<std::uint64_t>(i) + 1);
    }
  });
}

// ---- modes -----------------------------------------------------------------------------------

TEST_P(PhaserTest, producers_run_ahead_of_consumers) {
  constexpr int count = 50;
  std::vector<int> values(count, 0);
  long total = 0;
  finish([&] {
    Phaser step(signal_wait);
    task("consumer").phased(step, wait_only).launch([&, step] {
      for (int i = 0; i < count; ++i) {
        Phaser::next_all();
        total += values[static_cast<std::size_t>(i)];
      }
    });
    task("producer").phased(step, signal_only).launch([&, step] {
      for (int i = 0; i < count; ++i) {
        values[static_cast<std::size_t>(i)] = i;
        Phaser::next_all();  // never waits
      }
      EXPECT_EQ(step.mode(), signal_only);
    });
    step.drop();
  });
  EXPECT_EQ(total, count * (count - 1) / 2);
}

TEST_P(PhaserTest, a_bounded_producer_waits_for_the_slowest_consumer) {
  constexpr std::uint64_t ahead = 3;
  std::atomic<std::uint64_t> produced{0}, consumed{0};
  std::uint64_t most = 0;
  finish([&] {
    Phaser step(signal_wait, {.ahead = ahead, .name = "pipe"});
    task("consumer").phased(step, wait_only).launch([&, step] {
      for (int i = 0; i < 40; ++i) {
        Phaser::next_all();
        ++consumed;
        yield();
      }
    });
    task("producer").phased(step, signal_only).launch([&, step] {
      for (int i = 0; i < 40; ++i) {
        Phaser::next_all();
        ++produced;
        most = std::max(most, produced - consumed);
      }
    });
    step.drop();
  });
  EXPECT_EQ(produced, 40u);
  EXPECT_LE(most, ahead + 1);  // the consumer may have waited and not yet counted
}

TEST_P(PhaserTest, waiters_go_on_when_no_signaller_is_left) {
  int waits = 0;
  finish([&] {
    Phaser step(signal_wait);
    task("waits").phased(step, wait_only).launch([&, step] {
      for (; waits < 1000; ++waits) step.wait();
    });
    step.next();
    step.drop();
  });
  EXPECT_EQ(waits, 1000);
}

TEST_P(PhaserTest, a_phaser_made_to_wait_only_holds_nobody) {
  finish([] {
    Phaser step(wait_only);
    for (int i = 0; i < 5; ++i) step.next();
  });
}

TEST_P(PhaserTest, phased_without_arguments_hands_on_all) {
  finish([] {
    Phaser first(signal_wait);
    Phaser second(signal_wait);
    task("child").phased().launch([first, second] {
      EXPECT_TRUE(first.is_registered());
      EXPECT_TRUE(second.is_registered());
      Phaser::next_all();
    });
    Phaser::next_all();
    EXPECT_EQ(first.phase(), 1u);
    EXPECT_EQ(second.phase(), 1u);
  });
}

TEST_P(PhaserTest, a_chain_of_phasers_is_a_pipeline) {
  // Point to point: task i signals phaser i and waits for phaser i - 1, in one next().
  constexpr int stages = 6, items = 20;
  std::vector<std::vector<int>> at(stages, std::vector<int>(items, 0));
  std::atomic<int> wrong{0};
  finish([&] {
    std::vector<Phaser> done;
    for (int i = 0; i < stages; ++i) done.emplace_back(signal_wait);
    for (int i = 0; i < stages; ++i) {
      TaskBuilder stage = task("stage");
      (void)stage.phased(done[static_cast<std::size_t>(i)], signal_only);
      if (i > 0) (void)stage.phased(done[static_cast<std::size_t>(i) - 1], wait_only);
      stage.launch([&, done, i] {
        for (int item = 0; item < items; ++item) {
          if (i > 0) {
            done[static_cast<std::size_t>(i) - 1].wait();
            wrong += at[static_cast<std::size_t>(i) - 1][static_cast<std::size_t>(item)] == 0;
          }
          at[static_cast<std::size_t>(i)][static_cast<std::size_t>(item)] = 1;
          done[static_cast<std::size_t>(i)].signal();
        }
      });
    }
    Phaser::drop_all();
  });
  EXPECT_EQ(wrong, 0);
}

// ---- single ----------------------------------------------------------------------------------

TEST_P(PhaserTest, one_task_runs_the_function_while_all_others_wait) {
  constexpr int tasks = 7;
  std::atomic<int> inside{0};
  int runs = 0;
  std::atomic<int> wrong{0};
  finish([&] {
    Phaser step(single);
    for (int i = 0; i < tasks; ++i) {
      task("part").phased(step).launch([&, step] {
        for (int phase = 1; phase <= 10; ++phase) {
          ++inside;
          Phaser::next_all(single, [&] {
            wrong += inside != tasks * phase ? 1 : 0;
            yield();
            ++runs;
          });
          wrong += runs < phase ? 1 : 0;
          Phaser::next_all();
        }
      });
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(runs, 10);
}

TEST_P(PhaserTest, the_function_runs_too_if_the_last_to_come_leaves) {
  int runs = 0;
  finish([&] {
    Phaser step(single);
    task("waits").phased(step).launch([&, step] { Phaser::next_all(single, [&] { ++runs; }); });
    task("leaves").phased(step).launch([&, step] {
      for (int i = 0; i < 3; ++i) yield();
    });
    step.drop();
  });
  EXPECT_EQ(runs, 1);
}

TEST_P(PhaserTest, an_exception_of_the_function_is_thrown_where_it_ran_and_the_others_go_on) {
  std::atomic<int> went_on{0};
  EXPECT_THROW(finish([&] {
    Phaser step(single);
    for (int i = 0; i < 4; ++i) {
      task("part").phased(step).launch([&, step] {
        Phaser::next_all(single, [] { throw std::domain_error("in single"); });
        ++went_on;
      });
    }
  }), std::domain_error);
  EXPECT_EQ(went_on, 3);
}

// ---- ends ------------------------------------------------------------------------------------

TEST_P(PhaserTest, a_task_that_throws_drops_and_the_others_go_on) {
  std::atomic<int> passed{0};
  EXPECT_THROW(finish([&] {
    Phaser step(signal_wait);
    task("throws").phased(step).launch([] {
      Phaser::next_all();
      throw std::domain_error("as it should");
    });
    for (int i = 0; i < 3; ++i) {
      task("goes on").phased(step).launch([&, step] {
        for (int phase = 0; phase < 5; ++phase) Phaser::next_all();
        ++passed;
      });
    }
  }), std::domain_error);
  EXPECT_EQ(passed, 3);
}

TEST_P(PhaserTest, a_task_that_never_runs_drops) {
  bool passed = false;
  EXPECT_THROW(finish([&] {
    Phaser step(signal_wait);
    auto fails = task("fails").spawn([]() -> int { throw std::domain_error("as it should"); });
    task("never").in(fails).phased(step).launch([] { FAIL(); });
    task("waits").phased(step).launch([&, step] {
      Phaser::next_all();
      passed = true;
    });
  }), std::domain_error);
  EXPECT_TRUE(passed);
}

TEST_P(PhaserTest, a_task_whose_closure_cannot_be_copied_leaves_nothing_registered) {
  struct Throws {
    Throws() = default;
    Throws(const Throws&) { throw std::domain_error("as it should"); }
    void operator()() const {}
  };
  finish([&] {
    Phaser step(signal_wait);
    const Throws body;
    EXPECT_THROW(task("none").phased(step).launch(body), std::domain_error);
    Phaser::next_all();
  });
}

TEST_P(PhaserTest, the_end_of_finish_drops_what_its_owner_has_there_and_no_more) {
  finish([] {
    Phaser outer(signal_wait);
    finish([] {
      Phaser inner(signal_wait);
      task("child").phased(inner).launch([] { Phaser::next_all(); });
      // The body ends without a signal.
    });
    EXPECT_TRUE(outer.is_registered());
    Phaser::next_all();
  });
}

TEST_P(PhaserTest, a_body_of_finish_that_throws_drops_too) {
  bool passed = false;
  EXPECT_THROW(finish([&] {
    Phaser step(signal_wait);
    task("child").phased(step).launch([&, step] {
      Phaser::next_all();
      passed = true;
    });
    throw std::domain_error("as it should");
  }), std::domain_error);
  EXPECT_TRUE(passed);
}

TEST_P(PhaserTest, a_handle_may_outlive_the_finish_and_its_tasks) {
  auto keep = [] {
    std::vector<Phaser> kept;
    finish([&kept] { kept.emplace_back(signal_wait); });
    return kept[0];
  };
  const Phaser step = keep();
  EXPECT_FALSE(step.is_registered());
  EXPECT_TRUE(step.passed(1'000'000).ready());
}

TEST_P(PhaserTest, a_destructor_of_the_closure_may_signal) {
  struct Signals {
    explicit Signals(Phaser its_step) : step(std::move(its_step)) {}
    Signals(Signals&& other) noexcept : step(other.step), mine(std::exchange(other.mine, false)) {}
    ~Signals() {
      if (mine) step.next();
    }
    Phaser step;
    bool mine = true;
  };
  finish([] {
    Phaser step(signal_wait);
    task("signals late").phased(step).launch([late = Signals(step)] {});
    step.next();
    EXPECT_EQ(step.phase(), 1u);
  });
}

// ---- others that wait ------------------------------------------------------------------------

TEST_P(PhaserTest, passed_is_a_future_like_any_other) {
  std::atomic<int> order{0};
  finish([&] {
    Phaser step(signal_wait);
    Promise<void> never;
    auto second = task("after phase 1").in(step.passed(1)).spawn([&] { return ++order; });
    task("either").in(when_any(step.passed(0), never.future())).launch([&, step] {
      EXPECT_GE(step.phase(), 1u);
    });
    task("both").in(when_all(step.passed(0), step.passed(1))).launch([&, step] {
      EXPECT_GE(step.phase(), 2u);
    });
    EXPECT_FALSE(step.passed(0).ready());
    step.next();
    EXPECT_TRUE(step.passed(0).ready());
    EXPECT_FALSE(step.passed(1).ready());
    step.next();
    EXPECT_EQ(second.get(), 1);
    never.set();
  });
}

TEST_P(PhaserTest, a_phase_that_never_ends_is_passed_when_no_signaller_is_left) {
  Future<void> last, last_but_one;
  finish([&] {
    Phaser step(signal_wait);
    last = step.passed(UINT64_MAX);
    last_but_one = step.passed(UINT64_MAX - 1);
    task("part").phased(step).launch([] {
      for (int phase = 0; phase < 3; ++phase) Phaser::next_all();
    });
    for (int phase = 0; phase < 3; ++phase) {
      EXPECT_FALSE(last.ready());
      EXPECT_FALSE(step.passed(UINT64_MAX).ready());
      EXPECT_FALSE(last_but_one.ready());
      step.next();
    }
    EXPECT_FALSE(last.ready());
    step.drop();
    last.get();
    EXPECT_TRUE(step.passed(UINT64_MAX).ready());
  });
  EXPECT_TRUE(last_but_one.ready());
}

TEST_P(PhaserTest, a_thread_of_the_program_may_be_registered) {
  std::atomic<int> signals{0};
  Promise<void> over;
  std::thread thread([&] {
    finish([&] {
      Phaser step(signal_wait);
      for (int i = 0; i < 3; ++i) {
        task("part").phased(step).launch([&, step] {
          for (int phase = 0; phase < 5; ++phase) {
            ++signals;
            Phaser::next_all();
          }
        });
      }
      for (int phase = 1; phase <= 5; ++phase) {
        if (phase % 2 == 0) {
          EXPECT_TRUE(comes_true([&] { return signals >= 3 * phase; }));
        }
        Phaser::next_all();
        EXPECT_GE(signals, 3 * phase);
      }
    });
    over.set();
  });
  over.future().wait();  // if main is the only worker, no other thread runs the tasks
  thread.join();
}

TEST_P(PhaserTest, a_thread_that_ends_drops) {
  Future<void> child;
  std::thread([&child] {
    const Phaser step(signal_wait);
    child = task("child").phased(step).spawn([] { Phaser::next_all(); });
  }).join();
  child.get();
}

// ---- misuse ----------------------------------------------------------------------------------

TEST_P(PhaserTest, misuse_says_who_and_where) {
  finish([] {
    const Phaser step(signal_wait, {.name = "halo"});
    finish([&] {
      EXPECT_TRUE(has(error_of([&] { task("inner").phased(step).launch([] {}); }),
                      {"phased() by", "phaser \"halo\" (", "phaser_test.cpp", "task \"inner\" (",
                       "the finish() at", "phaser_test.cpp", "the one at", "phaser_test.cpp"}));
    });
    EXPECT_TRUE(has(error_of([&] { task("two").phased(step).phased(step).launch([] {}); }),
                    {"phased()", "halo", "registers task \"two\"", "twice"}));
    EXPECT_TRUE(has(error_of([&] { step.wait(); }),
                    {"wait()", "halo", "its own signal of phase 0", "signal() first",
                     "registered at", "signal_wait"}));
    task("stranger").launch([&, step] {
      EXPECT_TRUE(has(error_of([&] { step.next(); }),
                      {"next()", "\"stranger\"", "halo", "not registered"}));
      EXPECT_TRUE(has(error_of([] { Phaser::next_all(); }),
                      {"next()", "\"stranger\"", "no phaser"}));
      EXPECT_TRUE(has(error_of([&] { (void)step.mode(); }), {"mode()", "not registered"}));
      EXPECT_TRUE(has(error_of([&] { task("child").phased(step).launch([] {}); }),
                      {"phased()", "\"stranger\"", "halo", "not registered"}));
    });
    task("weak").phased(step, wait_only).launch([&, step] {
      EXPECT_TRUE(has(error_of([&] { task("strong").phased(step, signal_wait).launch([] {}); }),
                      {"phased()", "\"weak\"", "may not register task \"strong\"",
                       "as signal_wait", "wait_only", "in phase"}));
    });
    EXPECT_TRUE(has(error_of([&] { Phaser::next_all(single, [] {}); }),
                    {"next(single)", "halo", "must be registered as single", "registered as"}));
    EXPECT_TRUE(has(error_of([&] { Phaser::next_all(signal_wait, [] {}); }),
                    {"the mode `single`"}));
    Phaser::drop_all();
    EXPECT_TRUE(has(error_of([&] { step.drop(); }), {"drop()", "halo", "has dropped"}));
  });
  EXPECT_TRUE(has(error_of([] { Phaser(signal_wait, {.ahead = UINT32_MAX}); }),
                  {"phaser_test.cpp", "4294967295", "1 to 65536"}));
}

TEST_P(PhaserTest, next_single_on_one_of_two_phasers_names_it) {
  finish([] {
    Phaser first(single), second(single);
    EXPECT_TRUE(has(error_of([] { Phaser::next_all(single, [] {}); }),
                    {"next(single)", "registered on"}));
    int runs = 0;
    first.next(single, [&] {
      ++runs;
      EXPECT_TRUE(has(error_of([&] { first.next(); }), {"runs the function of a next(single)"}));
      EXPECT_TRUE(has(error_of([&] { first.drop(); }), {"runs the function of a next(single)"}));
      second.next();
    });
    EXPECT_EQ(runs, 1);
  });
}

}  // namespace
}  // namespace imbrex::test
