// SPDX-License-Identifier: BSD-3-Clause
// Accumulators one by one: what is put and got, when values end, and every misuse. Random programs
// on them: fuzz/phaser_fuzz.cpp.
#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error_of.hpp"
#include "core/on_runtime.hpp"
#include "imbrex/accumulator.hpp"

namespace imbrex::test {
namespace {

class AccumulatorTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, AccumulatorTest, testing::ValuesIn(every_policy({1, 2, 8})), name_of);

TEST_P(AccumulatorTest, values_put_in_a_phase_are_read_in_the_next_and_no_later) {
  constexpr int tasks = 6;
  for (const Accumulation how :
       {Accumulation::lazy, Accumulation::shared, Accumulation::reproducible}) {
    std::atomic<int> wrong{0};
    finish([&] {
      Phaser step(signal_wait);
      Accumulator<long> total(step, op::sum, how);
      Accumulator<long> largest(step, op::max, how);
      for (int i = 0; i < tasks; ++i) {
        task("part").phased(step).launch([&, step, i, total, largest] {
          wrong += total.get() != 0;  // nothing was before
          for (int phase = 1; phase <= 20; ++phase) {
            total.put(i);
            total.put(phase);
            largest.put(i * phase);
            if (phase % 3 == 0) yield();
            Phaser::next_all();
            wrong += total.get() != tasks * (tasks - 1) / 2 + phase * tasks;
            wrong += largest.get() != (tasks - 1) * phase;
          }
          Phaser::next_all();
          wrong += total.get() != 0;  // no task has put a value
          wrong += largest.get() != std::numeric_limits<long>::lowest();
        });
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST_P(AccumulatorTest, the_last_result_is_there_after_the_finish) {
  std::vector<Accumulator<int>> kept;
  finish([&] {
    Phaser step(signal_wait);
    kept.emplace_back(step, op::product);
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
  Phaser step(signal_wait);
  const Accumulator<Counted> total(step, plus, Counted(0), how);
  for (int i = 0; i < 3; ++i) {
    task("part").phased(step).launch([=] {
      for (int phase = 0; phase < 5; ++phase) {
        total.put(1);
        Phaser::next_all();
        EXPECT_EQ(total.get().value, 3);
      }
      leave(step);
    });
  }
}

TEST_P(AccumulatorTest, the_values_of_an_accumulator_end_before_the_finish_does) {
  using enum Accumulation;
  for (const Accumulation how : {lazy, shared, reproducible}) {
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

TEST_P(AccumulatorTest, a_kept_accumulator_keeps_its_values) {
  std::vector<Accumulator<Counted>> kept;
  finish([&] {
    Phaser step(signal_wait);
    kept.emplace_back(step, plus, Counted(0));
    kept[0].put(7);
    step.next();
  });
  EXPECT_EQ(kept[0].get().value, 7);
  kept.clear();
  EXPECT_EQ(Counted::live, 0);
}

TEST_P(AccumulatorTest, a_result_survives_a_last_phase_in_which_nothing_is_put) {
  std::vector<Accumulator<int>> kept;
  finish([&] {
    Phaser step(signal_wait);
    kept.emplace_back(step, op::sum);
    for (int i = 1; i <= 4; ++i) {
      task("part").phased(step).launch([i, all = kept[0]] {
        all.put(i);
        Phaser::next_all();
        EXPECT_EQ(all.get(), 10);
      });
    }
  });
  EXPECT_EQ(kept[0].get(), 10);
}

TEST_P(AccumulatorTest, phases_that_one_has_signalled_ahead_end_though_all_have_left) {
  finish([&] {
    const Phaser step(signal_wait, {.ahead = 4});
    const Accumulator<int> amount(step, op::sum);
    Promise<void> ran_ahead;
    task("ahead").phased(step, signal_only).launch([=] {
      for (int phase = 0; phase < 4; ++phase) {
        amount.put(10 + phase);
        Phaser::signal_all();
      }
      ran_ahead.set();
    });
    task("consumer").phased(step, wait_only).launch([=] {
      for (int phase = 0; phase < 4; ++phase) {
        Phaser::wait_all();
        EXPECT_EQ(amount.get(), 10 + phase);
      }
      Phaser::wait_all();  // no task signals any more
      EXPECT_EQ(amount.get(), 13);
    });
    ran_ahead.future().wait();
    step.drop();
  });
}

TEST_P(AccumulatorTest, a_reproducible_sum_is_the_same_to_the_last_bit) {
  const auto run = [](const unsigned seed) {
    std::vector<Accumulator<double>> kept;
    finish([&] {
      Phaser step(signal_wait);
      kept.emplace_back(step, op::sum, Accumulation::reproducible);
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

TEST_P(AccumulatorTest, any_type_and_operation_may_be_reduced) {
  struct Longer {
    std::string operator()(const std::string& a, const std::string& b) const {
      return b.size() > a.size() ? b : a;
    }
  };
  for (const Accumulation how :
       {Accumulation::lazy, Accumulation::shared, Accumulation::reproducible}) {
    std::vector<Accumulator<std::string>> kept;
    finish([&] {
      Phaser step(signal_wait);
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

TEST_P(AccumulatorTest, put_or_get_throws_the_exception_of_an_operation) {
  struct Throws {
    int operator()(int, int) const { throw std::domain_error("as it should"); }
  };
  finish([&] {
    Phaser step(signal_wait);
    const Accumulator<int> at_once(step, Throws(), 0, Accumulation::shared);
    const Accumulator<int> at_the_end(step, Throws(), 0, Accumulation::reproducible);
    EXPECT_THROW((at_once.put(1), at_once.put(2)), std::domain_error);
    at_the_end.put(1);
    task("other").phased(step).launch([at_the_end] { at_the_end.put(3); });
    Phaser::next_all();
    EXPECT_THROW((void)at_the_end.get(), std::domain_error);
    Phaser::next_all();
    EXPECT_EQ(at_the_end.get(), 0);
  });
}

TEST_P(AccumulatorTest, misuse_of_accumulators_says_who_and_where) {
  finish([] {
    Phaser step(signal_wait, {.name = "halo"});
    const Accumulator<int> all(step, op::sum);
    task("waits").phased(step, wait_only).launch([all] {
      EXPECT_TRUE(has(error_of([&] { all.put(1); }), {"put()", "\"waits\"", "halo", "wait_only"}));
    });
    task("signals").phased(step, signal_only).launch([all] {
      EXPECT_TRUE(has(error_of([&] { (void)all.get(); }), {"get()", "\"signals\"", "signal_only"}));
      for (int i = 0; i < 5; ++i) Phaser::signal_all();
      EXPECT_TRUE(has(error_of([&] { all.put(1); }), {"put()", "ahead", ".ahead = n"}));
    });
    task("stranger").launch([all] {
      EXPECT_TRUE(has(error_of([&] { all.put(1); }), {"put()", "\"stranger\"", "not registered"}));
    });
    Phaser::signal_all();
    EXPECT_TRUE(has(error_of([&] { Accumulator<int> late(step, op::sum); }),
                    {"an accumulator made", "halo", "before a task is registered"}));
    taskwait();  // else the end of finish() drops, and the phases go on
  });
}

TEST_P(AccumulatorTest, an_operation_must_not_wait) {
  struct Waits {
    int operator()(int a, int b) const {
      yield();
      return a + b;
    }
  };
  std::vector<Accumulator<int>> kept;
  finish([&] {
    Phaser step(signal_wait);
    kept.emplace_back(step, Waits(), 0, Accumulation::reproducible);
    for (int i = 0; i < 3; ++i) {
      task("part").phased(step).launch([all = kept[0]] { all.put(1); });
    }
  });
  EXPECT_TRUE(has(error_of([&] { (void)kept[0].get(); }), {"accumulator"}));
}

}  // namespace
}  // namespace imbrex::test
