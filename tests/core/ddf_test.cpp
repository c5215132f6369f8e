// SPDX-License-Identifier: BSD-3-Clause
// Data-driven futures, tasks that await them, and what a finish() is given to wait for.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class DdfTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, DdfTest, testing::ValuesIn(every_policy({1, 2, 8, 64})), name_of);

struct Odd {
  int value;
};
std::exception_ptr odd(int value) { return std::make_exception_ptr(Odd{value}); }

// What `call` throws as Error; empty if nothing.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
bool names_line(const std::string& text, int line) {
  return text.find("ddf_test.cpp:" + std::to_string(line)) != std::string::npos;
}

TEST_P(DdfTest, a_task_runs_after_all_that_it_awaits) {
  const Ddf<int> number("number");
  const Ddf<std::string> text("text");
  auto sum = task("sum").await_all(number, text).spawn([number, text] {
    return number.get() + static_cast<int>(text.get().size());
  });
  number.put(4);
  let_others_run();
  EXPECT_FALSE(sum.ready());
  task("put").launch([text] { text.put("abc"); });
  EXPECT_EQ(sum.get(), 7);
}

TEST_P(DdfTest, is_accepted_wherever_a_future_is) {
  const Ddf<int> number;
  const Ddf<void> signal;
  const std::vector<Ddf<int>> several(3);
  const Future<int> future = number;
  auto all = when_all(number, future, signal);
  auto first = when_any(several);
  auto after = task("after").in(number, signal).spawn([number] { return number.get(); });
  auto either = task("either").after_any(several[0], several[1]).spawn([] {});
  several[1].put(8);
  EXPECT_EQ(first.get(), 1u);
  either.get();
  EXPECT_FALSE(all.ready());
  number.put(3);
  signal.put();
  all.get();
  EXPECT_EQ(future.get() + after.get(), 6);
  signal.get();
}

TEST_P(DdfTest, a_task_that_awaits_any_is_released_once) {
  for (int round = 0; round < scaled(50); ++round) {
    const Ddf<int> one;
    const Ddf<std::string> two;
    const std::vector<Ddf<int>> many(4);
    std::atomic<int> runs = 0;
    finish([&] {
      task("any").await_any(one, two, many, task("task").in(one).spawn([] {})).launch([&] {
        ++runs;
      });
      for (const auto& each : many) task("put").launch([each] { each.put(1); });
      task("put").launch([one] { one.put(2); });
      std::thread([two] { two.put("x"); }).join();
    });
    EXPECT_EQ(runs, 1);
  }
}

TEST_P(DdfTest, a_second_put_names_both_places) {
  const Ddf<int> ddf("twice");
  ddf.put(1); const int first = __LINE__;
  const std::string text = error_of([&] { ddf.put(2); }); const int second = __LINE__;
  EXPECT_TRUE(names_line(text, first) && names_line(text, second)) << text;
  EXPECT_NE(text.find("twice"), std::string::npos) << text;
  auto thrown = task("putter").spawn([ddf] { ddf.put_exception(odd(1)); });
  const std::string by_task = error_of([&] { thrown.get(); });
  EXPECT_NE(by_task.find("putter"), std::string::npos) << by_task;
  EXPECT_EQ(ddf.get(), 1);
}

TEST_P(DdfTest, a_get_before_the_put_names_both_places) {
  const Ddf<int> ddf("early"); const int made = __LINE__;
  const std::string text = error_of([&] { (void)ddf.get(); }); const int got = __LINE__;
  EXPECT_TRUE(names_line(text, made) && names_line(text, got)) << text;
  auto getter = task("getter").spawn([ddf] { return ddf.get(); });
  const std::string by_task = error_of([&] { (void)getter.get(); });
  EXPECT_NE(by_task.find("getter"), std::string::npos) << by_task;
  ddf.put(1);
  EXPECT_EQ(ddf.get(), 1);
}

TEST_P(DdfTest, of_many_that_put_exactly_one_succeeds) {
  for (int round = 0; round < scaled(100); ++round) {
    const Ddf<int> ddf;
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

TEST_P(DdfTest, failures_reach_who_awaits) {
  const Ddf<int> ddf;
  auto waits = task("waits").await_all(ddf).spawn([] {});
  auto any = task("any").await_any(ddf).spawn([] {});
  ddf.put_exception(odd(7));
  EXPECT_THROW(waits.get(), DependencyFailed);
  EXPECT_THROW(any.get(), DependencyFailed);
  EXPECT_THROW((void)ddf.get(), Odd);
  Future<int> broken;
  {
    const Ddf<int> forgotten("forgotten");
    broken = forgotten;
  }
  EXPECT_THROW((void)broken.get(), BrokenPromise);
}

TEST_P(DdfTest, odd_uses) {
  Ddf<std::unique_ptr<int>> pointer;
  pointer.put(std::make_unique<int>(4));
  EXPECT_EQ(*pointer.get(), 4);
  const Ddf<std::unique_ptr<int>> moved = std::move(pointer);
  EXPECT_EQ(*moved.get(), 4);
  EXPECT_NE(error_of([&] { pointer.put(nullptr); }), "");
  EXPECT_NE(error_of([&] { (void)pointer.get(); }), "");
  EXPECT_THROW((void)task("empty").await_all(Future<int>()), Error);
  EXPECT_THROW((void)task("none").await_any(std::vector<Ddf<int>>()), Error);
  task("none").await_all(std::vector<Ddf<int>>()).spawn([] {}).get();
}

// ---- finish_owns -----------------------------------------------------------------------------

TEST_P(DdfTest, a_finish_waits_for_what_it_owns) {
  for (int round = 0; round < scaled(100); ++round) {
    const Promise<int> promise;
    std::atomic<bool> set = false;
    std::thread thread([&] {
      std::this_thread::yield();
      set = true;
      promise.set(1);
    });
    finish([&] { finish_owns(promise.future()); });
    EXPECT_TRUE(set);
    thread.join();
  }
}

TEST_P(DdfTest, what_a_task_hands_over_outlives_the_task) {
  const Promise<void> promise;
  const Promise<void> inner;
  std::atomic<int> ended = 0;
  auto whole = task("whole").spawn([&] {
    finish([&] {
      task("outer").launch([&] {
        task("deep").launch([&] {
          finish_owns(promise.future());
          ++ended;
        });
        finish([&] {  // the innermost one: it does not wait for the other
          finish_owns(inner.future());
        });
        ++ended;
      });
    });
    return ended.load();
  });
  let_others_run();
  EXPECT_FALSE(whole.ready());
  inner.set();
  while (ended != 2) yield();
  let_others_run();
  EXPECT_FALSE(whole.ready());
  promise.set();
  EXPECT_EQ(whole.get(), 2);
}

TEST_P(DdfTest, a_finish_rethrows_the_failure_of_what_it_owns) {
  const auto fail_one = [](bool in_task, bool before) {
    const Promise<int> promise;
    const auto hand_over = [&] {
      if (before) promise.set_exception(odd(5));
      finish_owns(promise.future());
    };
    finish([&] {
      in_task ? task("hands over").launch(hand_over) : hand_over();
      if (!before) task("sets").launch([promise] { promise.set_exception(odd(5)); });
    });
  };
  for (const bool in_task : {false, true}) {
    for (const bool before : {false, true}) EXPECT_THROW(fail_one(in_task, before), Odd);
  }
  try {
    Ddf<int> forgotten;
    finish([&] {
      finish_owns(forgotten);
      forgotten = Ddf<int>();
    });
    FAIL() << "nothing was thrown";
  } catch (const BrokenPromise&) {
  }
}

TEST_P(DdfTest, a_finish_may_own_tasks_of_others_and_many_things) {
  const Promise<void> go;
  auto other = task("other").in(go.future()).spawn([] { return 1; });
  std::vector<Promise<int>> promises(static_cast<std::size_t>(scaled(400)));
  finish([&] {
    finish_owns(other);
    finish_owns(other);
    for (const auto& promise : promises) {
      task("hands over").launch([promise] { finish_owns(promise.future()); });
      task("sets").launch([promise] { promise.set(1); });
    }
    go.set();
  });
  EXPECT_TRUE(other.ready());
  finish([] {});  // the next one owns nothing
}

TEST_P(DdfTest, nothing_is_owned_without_a_finish) {
  const Promise<int> promise;
  EXPECT_NE(error_of([&] { finish_owns(promise.future()); }), "");
  auto refused = task("alone").spawn([&] {
    return error_of([&] { finish_owns(promise.future()); });
  });
  EXPECT_NE(refused.get().find("alone"), std::string::npos);
  EXPECT_NE(error_of([] { finish([] { finish_owns(Future<int>()); }); }), "");
  promise.set(1);
}

TEST_P(DdfTest, a_thread_of_the_program_may_hand_over_in_its_own_finish) {
  const Promise<int> promise;
  std::atomic<bool> over = false;
  std::thread thread([&] {
    finish([&] { finish_owns(promise.future()); });
    over = true;
  });
  EXPECT_TRUE(comes_true([&] { return over || waits("foreign thread", "finish"); }));
  EXPECT_FALSE(over);
  promise.set(1);
  thread.join();
}

}  // namespace
}  // namespace imbrex::test
