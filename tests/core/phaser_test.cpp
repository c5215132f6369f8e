// SPDX-License-Identifier: BSD-3-Clause
// Phasers and accumulators one by one: what each operation does, where they end, and every misuse.
// Random programs on them: fuzz/phaser_fuzz.cpp.
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/on_runtime.hpp"
#include "imbrex/accumulator.hpp"

namespace imbrex::test {
namespace {

class PhaserTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, PhaserTest, testing::ValuesIn(every_policy({1, 2, 8})), name_of);
class PhaserWideTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, PhaserWideTest,
                         testing::ValuesIn(setups({64}, {"", "fifo", "seeded:3"})), name_of);

// What `call` throws as an Error, or "".
template <class F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
// Whether `text` has all of these, in this order.
testing::AssertionResult has(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    at = text.find(part, at);
    if (at == std::string::npos) return testing::AssertionFailure() << part << "\nin: " << text;
  }
  return testing::AssertionSuccess();
}

// ---- barriers --------------------------------------------------------------------------------

template <class Test>
void check_barrier(const int tasks, const int phases) {
  std::vector<std::atomic<int>> steps(static_cast<std::size_t>(tasks));
  std::atomic<int> wrong{0};
  finish([&] {
    Phaser step;
    for (int i = 0; i < tasks; ++i) {
      task("part").phased(step).launch([&, step, i] {
        for (int phase = 1; phase <= phases; ++phase) {
          steps[static_cast<std::size_t>(i)] = phase;
          next();
          for (const std::atomic<int>& other : steps) wrong += other < phase ? 1 : 0;
          next();
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

TEST_P(PhaserTest, one_task_alone_never_waits) {
  finish([] {
    Phaser step;
    for (int i = 0; i < 100; ++i) next();
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
    Phaser step;
    task("child").phased(step).launch([&, step] {
      yield();
      signalled = true;
      signal();
    });
    next();
    EXPECT_TRUE(signalled);
  });
}

TEST_P(PhaserTest, a_child_has_signalled_what_its_parent_has) {
  finish([] {
    Phaser step;
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
    Phaser step;
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
    Phaser step;
    task("consumer").phased(step, wait_only).launch([&, step] {
      for (int i = 0; i < count; ++i) {
        next();
        total += values[static_cast<std::size_t>(i)];
      }
    });
    task("producer").phased(step, signal_only).launch([&, step] {
      for (int i = 0; i < count; ++i) {
        values[static_cast<std::size_t>(i)] = i;
        next();  // never waits
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
        next();
        ++consumed;
        yield();
      }
    });
    task("producer").phased(step, signal_only).launch([&, step] {
      for (int i = 0; i < 40; ++i) {
        next();
        ++produced;
        most = std::max(most, produced - consumed);
      }
    });
    step.drop();
  });
  EXPECT_EQ(produced, 40u);
  EXPECT_LE(most, ahead + 1);  // the consumer may have waited and not yet counted
}

TEST_P(PhaserTest, those_who_wait_go_on_when_no_signaller_is_left) {
  int waits = 0;
  finish([&] {
    Phaser step;
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
    Phaser first;
    Phaser second(signal_wait);
    task("child").phased().launch([first, second] {
      EXPECT_TRUE(first.is_registered());
      EXPECT_TRUE(second.is_registered());
      next();
    });
    next();
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
    drop();
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
          next(single, [&] {
            wrong += inside != tasks * phase ? 1 : 0;
            yield();
            ++runs;
          });
          wrong += runs < phase ? 1 : 0;
          next();
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
    task("waits").phased(step).launch([&, step] { next(single, [&] { ++runs; }); });
    task("leaves").phased(step).launch([&, step] {
      for (int i = 0; i < 3; ++i) yield();
    });
    step.drop();
  });
  EXPECT_EQ(runs, 1);
}

TEST_P(PhaserTest, what_the_function_throws_is_thrown_where_it_ran_and_the_others_go_on) {
  std::atomic<int> went_on{0};
  EXPECT_THROW(finish([&] {
    Phaser step(single);
    for (int i = 0; i < 4; ++i) {
      task("part").phased(step).launch([&, step] {
        next(single, [] { throw std::domain_error("in single"); });
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
    Phaser step;
    task("throws").phased(step).launch([] {
      next();
      throw std::domain_error("as it should");
    });
    for (int i = 0; i < 3; ++i) {
      task("goes on").phased(step).launch([&, step] {
        for (int phase = 0; phase < 5; ++phase) next();
        ++passed;
      });
    }
  }), std::domain_error);
  EXPECT_EQ(passed, 3);
}

TEST_P(PhaserTest, a_task_that_never_runs_drops) {
  bool passed = false;
  EXPECT_THROW(finish([&] {
    Phaser step;
    auto fails = task("fails").spawn([]() -> int { throw std::domain_error("as it should"); });
    task("never").in(fails).phased(step).launch([] { FAIL(); });
    task("waits").phased(step).launch([&, step] {
      next();
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
    Phaser step;
    const Throws body;
    EXPECT_THROW(task("none").phased(step).launch(body), std::domain_error);
    next();
  });
}

TEST_P(PhaserTest, the_end_of_finish_drops_what_its_owner_has_there_and_no_more) {
  finish([] {
    Phaser outer;
    finish([] {
      Phaser inner;
      task("child").phased(inner).launch([] { next(); });
      // The body ends without a signal.
    });
    EXPECT_TRUE(outer.is_registered());
    next();
  });
}

TEST_P(PhaserTest, a_body_of_finish_that_throws_drops_too) {
  bool passed = false;
  EXPECT_THROW(finish([&] {
    Phaser step;
    task("child").phased(step).launch([&, step] {
      next();
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
    Phaser step;
    task("signals late").phased(step).launch([late = Signals(step)] {});
    step.next();
    EXPECT_EQ(step.phase(), 1u);
  });
}

// ---- others that wait ------------------------------------------------------------------------

TEST_P(PhaserTest, passed_is_a_future_like_any_other) {
  std::atomic<int> order{0};
  finish([&] {
    Phaser step;
    Promise<void> never;
    auto second = task("after phase 1").in(step.passed(1)).spawn([&] { return ++order; });
    task("either").after_any(step.passed(0), never.future()).launch([&, step] {
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
    Phaser step;
    last = step.passed(UINT64_MAX);
    last_but_one = step.passed(UINT64_MAX - 1);
    task("part").phased(step).launch([] {
      for (int phase = 0; phase < 3; ++phase) next();
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
      Phaser step;
      for (int i = 0; i < 3; ++i) {
        task("part").phased(step).launch([&, step] {
          for (int phase = 0; phase < 5; ++phase) {
            ++signals;
            next();
          }
        });
      }
      for (int phase = 1; phase <= 5; ++phase) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        next();
        EXPECT_GE(signals, 3 * phase);
      }
    });
    over.set();
  });
  over.future().wait();  // where main is the only worker, nobody else runs the tasks
  thread.join();
}

TEST_P(PhaserTest, a_thread_that_ends_drops) {
  Future<void> child;
  std::thread([&child] {
    const Phaser step;
    child = task("child").phased(step).spawn([] { next(); });
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
      EXPECT_TRUE(has(error_of([] { next(); }), {"next()", "\"stranger\"", "no phaser"}));
      EXPECT_TRUE(has(error_of([&] { (void)step.mode(); }), {"mode()", "not registered"}));
      EXPECT_TRUE(has(error_of([&] { task("child").phased(step).launch([] {}); }),
                      {"phased()", "\"stranger\"", "halo", "not registered"}));
    });
    task("weak").phased(step, wait_only).launch([&, step] {
      EXPECT_TRUE(has(error_of([&] { task("strong").phased(step, signal_wait).launch([] {}); }),
                      {"phased()", "\"weak\"", "task \"strong\"", "as signal_wait", "no such right",
                       "wait_only", "in phase"}));
    });
    EXPECT_TRUE(has(error_of([&] { next(single, [] {}); }),
                    {"next(single)", "halo", "must be so as single", "registered as"}));
    EXPECT_TRUE(has(error_of([&] { next(signal_wait, [] {}); }), {"the mode `single`"}));
    drop();
    EXPECT_TRUE(has(error_of([&] { step.drop(); }), {"drop()", "halo", "has dropped"}));
  });
  EXPECT_TRUE(has(error_of([] { Phaser(signal_wait, {.ahead = UINT32_MAX}); }),
                  {"phaser_test.cpp", "4294967295", "65536 at most"}));
}

TEST_P(PhaserTest, next_single_on_one_of_two_phasers_names_it) {
  finish([] {
    Phaser first(single), second(single);
    EXPECT_TRUE(has(error_of([] { next(single, [] {}); }), {"next(single)", "registered on"}));
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

// ---- accumulators ----------------------------------------------------------------------------

TEST_P(PhaserTest, what_is_put_in_a_phase_is_read_in_the_next_and_no_later) {
  constexpr int tasks = 6;
  for (const Accumulation how :
       {Accumulation::lazy, Accumulation::eager, Accumulation::reproducible}) {
    std::atomic<int> wrong{0};
    finish([&] {
      Phaser step;
      Accumulator<long> total(step, sum, how);
      Accumulator<long> largest(step, max, how);
      for (int i = 0; i < tasks; ++i) {
        task("part").phased(step).launch([&, step, i, total, largest] {
          wrong += total.get() != 0;  // nothing was before
          for (int phase = 1; phase <= 20; ++phase) {
            total.put(i);
            total.put(phase);
            largest.put(i * phase);
            if (phase % 3 == 0) yield();
            next();
            wrong += total.get() != tasks * (tasks - 1) / 2 + phase * tasks;
            wrong += largest.get() != (tasks - 1) * phase;
          }
          next();
          wrong += total.get() != 0;  // nobody has put anything
          wrong += largest.get() != std::numeric_limits<long>::lowest();
        });
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST_P(PhaserTest, the_last_result_is_there_after_the_finish) {
  std::vector<Accumulator<int>> kept;
  finish([&] {
    Phaser step;
    kept.emplace_back(step, product);
    for (int i = 1; i <= 5; ++i) {
      task("factor").phased(step).launch([i, all = kept[0]] { all.put(i); });
    }
  });
  EXPECT_EQ(kept[0].get(), 120);
}

// Counts those that live.
struct Counted {
  static inline std::atomic<int> live{0};
  Counted(const int its_value) noexcept : value(its_value) { ++live; }  // NOLINT: converts
  Counted(const Counted& other) noexcept : value(other.value) { ++live; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --live; }
  int value;
};
constexpr auto plus = [](const Counted& a, const Counted& b) { return Counted(a.value + b.value); };

// Three tasks put and get in `how`; `leave` is called by each of them at its end.
template <class Leave>
void count_in_phases(const Accumulation how, const Leave& leave) {
  Phaser step;
  const Accumulator<Counted> total(step, plus, Counted(0), how);
  for (int i = 0; i < 3; ++i) {
    task("part").phased(step).launch([=] {
      for (int phase = 0; phase < 5; ++phase) {
        total.put(1);
        next();
        EXPECT_EQ(total.get().value, 3);
      }
      leave(step);
    });
  }
}

TEST_P(PhaserTest, the_values_of_an_accumulator_end_before_the_finish_does) {
  using enum Accumulation;
  for (const Accumulation how : {lazy, eager, reproducible}) {
    finish([&] { count_in_phases(how, [](const Phaser&) {}); });
    EXPECT_EQ(Counted::live, 0);
    finish([&] { count_in_phases(how, [](const Phaser& step) { step.drop(); }); });
    EXPECT_EQ(Counted::live, 0);
    finish([&] {  // by a task that belongs to the finish()
      task("maker").launch([how] { count_in_phases(how, [](const Phaser&) {}); });
    });
    EXPECT_EQ(Counted::live, 0);
    EXPECT_THROW(finish([&] {
                   count_in_phases(how, [](const Phaser&) { throw std::domain_error("end"); });
                 }),
                 std::domain_error);
    EXPECT_EQ(Counted::live, 0);
  }
}

TEST_P(PhaserTest, a_kept_accumulator_keeps_its_values) {
  std::vector<Accumulator<Counted>> kept;
  finish([&] {
    Phaser step;
    kept.emplace_back(step, plus, Counted(0));
    kept[0].put(7);
    step.next();
  });
  EXPECT_EQ(kept[0].get().value, 7);
  kept.clear();
  EXPECT_EQ(Counted::live, 0);
}

TEST_P(PhaserTest, a_result_survives_a_last_phase_in_which_nothing_is_put) {
  std::vector<Accumulator<int>> kept;
  finish([&] {
    Phaser step;
    kept.emplace_back(step, sum);
    for (int i = 1; i <= 4; ++i) {
      task("part").phased(step).launch([i, all = kept[0]] {
        all.put(i);
        next();
        EXPECT_EQ(all.get(), 10);
      });
    }
  });
  EXPECT_EQ(kept[0].get(), 10);
}

TEST_P(PhaserTest, phases_that_one_has_signalled_ahead_end_though_all_have_left) {
  finish([&] {
    const Phaser step(signal_wait, {.ahead = 4});
    const Accumulator<int> amount(step, sum);
    Promise<void> ran_ahead;
    task("ahead").phased(step, signal_only).launch([=] {
      for (int phase = 0; phase < 4; ++phase) {
        amount.put(10 + phase);
        signal();
      }
      ran_ahead.set();
    });
    task("consumer").phased(step, wait_only).launch([=] {
      for (int phase = 0; phase < 4; ++phase) {
        wait();
        EXPECT_EQ(amount.get(), 10 + phase);
      }
      wait();  // nobody signals any more
      EXPECT_EQ(amount.get(), 13);
    });
    ran_ahead.future().wait();
    step.drop();
  });
}

TEST_P(PhaserTest, a_reproducible_sum_is_the_same_to_the_last_bit) {
  const auto run = [](const unsigned seed) {
    std::vector<Accumulator<double>> kept;
    finish([&] {
      Phaser step;
      kept.emplace_back(step, sum, Accumulation::reproducible);
      for (int i = 0; i < 20; ++i) {
        task("outer").phased(step).launch([&, step, i, all = kept[0]] {
          std::mt19937 random(seed + static_cast<unsigned>(i));
          for (unsigned n = random() % 4; n > 0; --n) yield();
          all.put(std::pow(10.0, i - 10));
          task("inner").phased(step).launch([i, all] { all.put(1.0 / (i + 3)); });
        });
      }
    });
    return kept[0].get();
  };
  const double first = run(1);
  for (unsigned seed = 2; seed < 8; ++seed) EXPECT_EQ(run(seed), first);
}

TEST_P(PhaserTest, any_type_and_operation_may_be_reduced) {
  struct Longer {
    std::string operator()(const std::string& a, const std::string& b) const {
      return b.size() > a.size() ? b : a;
    }
  };
  for (const Accumulation how :
       {Accumulation::lazy, Accumulation::eager, Accumulation::reproducible}) {
    std::vector<Accumulator<std::string>> kept;
    finish([&] {
      Phaser step;
      kept.emplace_back(step, Longer(), std::string(), how);
      for (int i = 1; i <= 5; ++i) {
        task("word").phased(step).launch([i, all = kept[0]] {
          all.put(std::string(static_cast<std::size_t>(i), 'x'));
        });
      }
    });
    EXPECT_EQ(kept[0].get(), "xxxxx");
  }
}

TEST_P(PhaserTest, what_an_operation_throws_is_thrown_by_put_or_get) {
  struct Throws {
    int operator()(int, int) const { throw std::domain_error("as it should"); }
  };
  finish([&] {
    Phaser step;
    const Accumulator<int> at_once(step, Throws(), 0, Accumulation::eager);
    const Accumulator<int> at_the_end(step, Throws(), 0, Accumulation::reproducible);
    EXPECT_THROW((at_once.put(1), at_once.put(2)), std::domain_error);
    at_the_end.put(1);
    task("other").phased(step).launch([at_the_end] { at_the_end.put(3); });
    next();
    EXPECT_THROW((void)at_the_end.get(), std::domain_error);
    next();
    EXPECT_EQ(at_the_end.get(), 0);
  });
}

TEST_P(PhaserTest, misuse_of_accumulators_says_who_and_where) {
  finish([] {
    Phaser step(signal_wait, {.name = "halo"});
    const Accumulator<int> all(step, sum);
    task("waits").phased(step, wait_only).launch([all] {
      EXPECT_TRUE(has(error_of([&] { all.put(1); }), {"put()", "\"waits\"", "halo", "wait_only"}));
    });
    task("signals").phased(step, signal_only).launch([all] {
      EXPECT_TRUE(has(error_of([&] { (void)all.get(); }), {"get()", "\"signals\"", "signal_only"}));
      for (int i = 0; i < 5; ++i) signal();
      EXPECT_TRUE(has(error_of([&] { all.put(1); }), {"put()", "ahead", ".ahead = n"}));
    });
    task("stranger").launch([all] {
      EXPECT_TRUE(has(error_of([&] { all.put(1); }), {"put()", "\"stranger\"", "not registered"}));
    });
    signal();
    EXPECT_TRUE(has(error_of([&] { Accumulator<int> late(step, sum); }),
                    {"an accumulator made", "halo", "before a task is registered"}));
    taskwait();  // else the end of finish() drops, and the phases go on
  });
}

TEST_P(PhaserTest, an_operation_must_not_wait) {
  struct Waits {
    int operator()(int a, int b) const {
      yield();
      return a + b;
    }
  };
  std::vector<Accumulator<int>> kept;
  finish([&] {
    Phaser step;
    kept.emplace_back(step, Waits(), 0, Accumulation::reproducible);
    for (int i = 0; i < 3; ++i) {
      task("part").phased(step).launch([all = kept[0]] { all.put(1); });
    }
  });
  EXPECT_TRUE(has(error_of([&] { (void)kept[0].get(); }), {"accumulator"}));
}

}  // namespace
}  // namespace imbrex::test
