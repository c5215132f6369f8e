// SPDX-License-Identifier: BSD-3-Clause
// Habanero's names: each does what the call does that it stands for, for every kind of body.
#include "imbrex/compat/habanero.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error_of.hpp"
#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class HabaneroTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, HabaneroTest, testing::ValuesIn(every_policy({1, 2, 8, 64})),
                         name_of);

namespace hc = imbrex::habanero;

std::atomic<int> calls = 0;
void add_one() { ++calls; }

struct Counts {  // how it was copied and moved
  explicit Counts(int& count) : copies(&count) {}
  Counts(const Counts& other) : copies(other.copies) { ++*copies; }
  Counts(Counts&&) = default;
  void operator()() const { ++calls; }
  int* copies;
};

TEST_P(HabaneroTest, finish_waits_for_async_and_future_has_its_result) {
  calls = 0;
  hc::finish([] {
    for (int i = 0; i < scaled(100); ++i) {
      hc::async([] { hc::async(add_one); });
    }
  });
  EXPECT_EQ(calls, scaled(100));
  EXPECT_EQ(hc::async_future([] { return 7; }).get(), 7);
}

// ---- ddf ---------------------------------------------------------------------------------------

struct Odd {
  int value;
};
std::exception_ptr odd(int value) { return std::make_exception_ptr(Odd{value}); }

bool names_line(const std::string& text, int line) {
  return text.find("habanero_test.cpp:" + std::to_string(line)) != std::string::npos;
}

TEST_P(HabaneroTest, a_ddf_makes_a_future_like_any_other) {
  const hc::ddf<int> number;
  const hc::ddf<void> signal;
  const std::vector<hc::ddf<int>> several(3);
  const Future<int> future = number.future();
  auto all = when_all(number.future(), future, signal.future());
  auto first = when_any(several[0].future(), several[1].future());
  auto after = task("after").in(future, signal.future()).spawn([number] { return number.get(); });
  several[1].put(8);
  EXPECT_EQ(first.get(), 1u);
  EXPECT_FALSE(all.ready());
  number.put(3);
  signal.put();
  all.get();
  EXPECT_EQ(future.get() + after.get(), 6);
  signal.get();
}

TEST_P(HabaneroTest, a_second_put_names_both_places) {
  const hc::ddf<int> ddf("twice");
  ddf.put(1); const int first = __LINE__;
  const std::string text = error_of([&] { ddf.put(2); }); const int second = __LINE__;
  EXPECT_TRUE(names_line(text, first) && names_line(text, second)) << text;
  EXPECT_NE(text.find("twice"), std::string::npos) << text;
  EXPECT_NE(error_of([&] { ddf.put_exception(odd(1)); }), "");
  EXPECT_EQ(ddf.get(), 1);
}

TEST_P(HabaneroTest, a_get_before_the_put_names_both_places) {
  const hc::ddf<int> ddf("early"); const int made = __LINE__;
  const std::string text = error_of([&] { (void)ddf.get(); }); const int got = __LINE__;
  EXPECT_TRUE(names_line(text, made) && names_line(text, got)) << text;
  auto getter = task("getter").spawn([ddf] { return ddf.get(); });
  EXPECT_NE(error_of([&] { (void)getter.get(); }), "");
  ddf.put(1);
  EXPECT_EQ(ddf.get(), 1);
}

TEST_P(HabaneroTest, exactly_one_of_many_puts_succeeds) {
  for (int round = 0; round < scaled(100); ++round) {
    const hc::ddf<int> ddf;
    std::atomic<int> refused = 0;
    finish([&] {
      for (int i = 0; i < 4; ++i) {
        task("put").launch([&refused, ddf, i] {
          if (!error_of([&] { ddf.put(i); }).empty()) ++refused;
        });
      }
    });
    ASSERT_EQ(refused, 3);
  }
}

TEST_P(HabaneroTest, a_ddf_is_moved_copied_and_given_up) {
  hc::ddf<std::unique_ptr<int>> pointer;
  pointer.put(std::make_unique<int>(4));
  EXPECT_EQ(*pointer.get(), 4);
  const hc::ddf<std::unique_ptr<int>> moved = std::move(pointer);
  EXPECT_EQ(*moved.get(), 4);
  EXPECT_NE(error_of([&] { pointer.put(nullptr); }), "");
  EXPECT_NE(error_of([&] { (void)pointer.get(); }), "");
  Future<int> broken;
  {
    const hc::ddf<int> forgotten("forgotten");
    EXPECT_NE(error_of([&] { forgotten.put_exception(nullptr); }), "");
    broken = forgotten.future();
  }
  EXPECT_THROW((void)broken.get(), BrokenPromise);
}

TEST_P(HabaneroTest, a_finish_may_own_a_ddf) {
  const hc::ddf<int> late;
  std::thread thread;
  finish([&] {
    hc::finish_owns(late);
    thread = std::thread([late] { late.put(1); });
  });
  EXPECT_EQ(late.get(), 1);
  thread.join();
}

// ---- tasks that await ------------------------------------------------------------------------

TEST_P(HabaneroTest, async_await_begins_when_all_have_come) {
  const hc::ddf<int> one;
  const std::vector<hc::ddf<int>> more(3);
  std::atomic<int> sum = 0;
  hc::finish([&] {
    hc::async_await(
        [&, one] {
          sum = one.get();
          for (const auto& each : more) sum += each.get();
        },
        one, more, hc::async_future([] {}));
    one.put(1);
    for (const auto& each : more) hc::async([each] { each.put(2); });
  });
  EXPECT_EQ(sum, 7);
}

TEST_P(HabaneroTest, async_await_any_runs_once) {
  for (int round = 0; round < scaled(20); ++round) {
    const hc::ddf<int> one;
    const hc::ddf<std::string> two;
    const std::vector<hc::ddf<int>> many(4);
    std::atomic<int> runs = 0;
    hc::finish([&] {
      hc::async_await_any([&] { ++runs; }, one, two, many,
                          task("task").in(one.future()).spawn([] {}));
      for (const auto& each : many) hc::async([each] { each.put(1); });
      hc::async([one] { one.put(1); });
      std::thread([two] { two.put("x"); }).join();
    });
    EXPECT_EQ(runs, 1);
  }
}

TEST_P(HabaneroTest, every_kind_of_body_is_taken_as_by_launch) {
  calls = 0;
  int copies = 0;
  hc::ddf<void> go;
  hc::finish([&] {
    const Counts constant(copies);
    Counts named(copies);
    const std::function<void()> wrapped = add_one;
    hc::async_await(add_one, go);
    hc::async_await(&add_one, go);
    hc::async_await(wrapped, go);
    hc::async_await(constant, go);
    hc::async_await(named, go);
    EXPECT_EQ(copies, 2);
    hc::async_await(std::move(named), go);
    hc::async_await(Counts(copies), go);
    EXPECT_EQ(copies, 2);
    hc::async_await([only = std::make_unique<int>(1)]() mutable { calls += *std::move(only); }, go);
    hc::async_await([] { return ++calls; }, go);  // what it returns is dropped
    go.put();
  });
  EXPECT_EQ(calls, 9);
}

TEST_P(HabaneroTest, async_at_runs_in_its_place) {
  const hc::ddf<int> ready;
  const Place first = hc::place(0);
  std::atomic<int> right = 0;
  hc::finish([&] {
    hc::async_at([&] { right += hc::current_place() == first; }, first);
    hc::async_await_at([&] { right += ready.get() == 3 && hc::current_place() == first; }, ready,
                       first);
    ready.put(3);
  });
  EXPECT_EQ(right, 2);
}

TEST_P(HabaneroTest, async_phased_keeps_tasks_in_step) {
  const int tasks = 5;
  const int phases = 4;
  std::atomic<int> arrived = 0;
  std::atomic<int> wrong = 0;
  const auto part = [&] {
    for (int phase = 1; phase <= phases; ++phase) {
      ++arrived;
      hc::next();
      if (arrived < phase * tasks) ++wrong;
      hc::next();
    }
  };
  hc::finish([&] {
    const hc::phaser step;
    for (int i = 0; i < 3; ++i) hc::async_phased(part, step);
    hc::async_phased(part);
    hc::async_phased(part, step, hc::signal_wait);
    hc::async_phased([&, step] { step.wait(); }, step, hc::wait_only);
  });
  EXPECT_EQ(arrived, phases * tasks);
  EXPECT_EQ(wrong, 0);
}

TEST_P(HabaneroTest, async_phased_registers_on_one_or_all) {
  std::atomic<int> right = 0;
  hc::finish([&] {
    const hc::phaser step;
    const hc::phaser other;
    const hc::accumulator<int> sum(step, imbrex::op::sum);
    const auto check = [=, &right](const bool on_other, const PhaserMode mode) {
      right += step.mode() == mode && other.is_registered() == on_other;
    };
    hc::async_phased([=, &right] {
      check(true, hc::signal_wait);
      sum.put(3);
      hc::next();
      right += sum.get() == 8;
    });
    hc::async_phased(
        [=] {
          check(false, hc::signal_wait);
          sum.put(5);
        },
        step);
    hc::async_phased([=] { check(false, hc::signal_only); }, step, hc::signal_only);
  });
  EXPECT_EQ(right, 4);
}

TEST_P(HabaneroTest, reports_name_the_place_of_the_call) {
  const Promise<int> twice;
  twice.set(1);
  std::string text;
  int line = 0;
  try {
    hc::finish([&] {
      const hc::ddf<void> go;
      go.put();
      line = __LINE__ + 1;
      hc::async_await([twice] { twice.set(2); }, go);
    });
  } catch (const Error& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("\"async_await\" ("), std::string::npos) << text;
  EXPECT_NE(text.find("habanero_test.cpp:" + std::to_string(line) + ")"), std::string::npos)
      << text;
}

TEST_P(HabaneroTest, failures_reach_the_finish) {
  const hc::ddf<int> failed;
  calls = 0;
  EXPECT_THROW(hc::finish([&] {
                 hc::async_await(add_one, failed);
                 failed.put_exception(std::make_exception_ptr(Error("no value")));
               }),
               DependencyFailed);
  EXPECT_EQ(calls, 0);
  const hc::ddf<int> also;
  EXPECT_THROW(hc::finish([&] {
                 hc::async_await_any(add_one, also);
                 also.put_exception(odd(7));
               }),
               DependencyFailed);
  EXPECT_THROW((void)also.get(), Odd);
  EXPECT_EQ(calls, 0);
  EXPECT_NE(error_of([] { hc::async_await(add_one, Future<int>()); }), "");
  EXPECT_NE(error_of([] { hc::async_await_any(add_one, std::vector<hc::ddf<int>>()); }), "");
  hc::finish([] { hc::async_await(add_one, std::vector<hc::ddf<int>>()); });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace imbrex::test
