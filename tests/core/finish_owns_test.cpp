// SPDX-License-Identifier: BSD-3-Clause
// Futures that are handed over to a finish(), which waits for them.
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error_of.hpp"
#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class FinishOwnsTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, FinishOwnsTest, testing::ValuesIn(every_policy({1, 2, 8, 64})),
                         name_of);

struct Odd {
  int value;
};
std::exception_ptr odd(int value) { return std::make_exception_ptr(Odd{value}); }

TEST_P(FinishOwnsTest, a_finish_waits_for_what_it_owns) {
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

TEST_P(FinishOwnsTest, an_event_that_a_task_hands_over_outlives_the_task) {
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

TEST_P(FinishOwnsTest, a_finish_rethrows_the_failure_of_what_it_owns) {
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
    Promise<int> forgotten;
    finish([&] {
      finish_owns(forgotten.future());
      forgotten = Promise<int>();
    });
    FAIL() << "nothing was thrown";
  } catch (const BrokenPromise&) {
  }
}

TEST_P(FinishOwnsTest, a_finish_may_own_tasks_of_others_and_many_things) {
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

TEST_P(FinishOwnsTest, nothing_is_owned_without_a_finish) {
  const Promise<int> promise;
  EXPECT_NE(error_of([&] { finish_owns(promise.future()); }), "");
  auto refused = task("alone").spawn([&] {
    return error_of([&] { finish_owns(promise.future()); });
  });
  EXPECT_NE(refused.get().find("alone"), std::string::npos);
  EXPECT_NE(error_of([] { finish([] { finish_owns(Future<int>()); }); }), "");
  promise.set(1);
}

TEST_P(FinishOwnsTest, a_thread_of_the_program_may_hand_over_in_its_own_finish) {
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
