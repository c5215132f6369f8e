// SPDX-License-Identifier: BSD-3-Clause
// Promises and futures, in tasks and in threads of the program's own; all of and any of several.
#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/error_of.hpp"
#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class FutureTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, FutureTest, testing::ValuesIn(every_setup()), name_of);

class FutureMemoryTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, FutureMemoryTest,
                         testing::ValuesIn(setups({1, 2}, {"", "steal", "fifo", "priority", "sa",
                                                           "ga"})),
                         name_of);

struct Odd {
  int value;
};

TEST_P(FutureTest, a_value_set_before_or_after_the_wait_is_got) {
  Promise<int> early;
  early.set(1);
  EXPECT_TRUE(early.future().ready());
  EXPECT_EQ(early.future().get(), 1);

  Promise<int> late;
  auto waiter = task("waiter").spawn([future = late.future()] { return future.get() + 1; });
  let_others_run();
  EXPECT_FALSE(waiter.ready());
  late.set(2);
  EXPECT_EQ(waiter.get(), 3);
}

TEST_P(FutureTest, a_promise_may_be_set_by_a_task) {
  Promise<std::string> promise;
  task("setter").launch([promise] {
    yield();
    promise.set(3, 'y');  // constructs in place
  });
  EXPECT_EQ(promise.future().get(), "yyy");
}

TEST_P(FutureTest, a_promise_may_be_set_by_a_thread_of_the_program) {
  Promise<int> promise;
  auto waiter = task("waiter").spawn([future = promise.future()] { return future.get() * 2; });
  std::thread thread([promise] {
    EXPECT_TRUE(comes_true([] { return waits("waiter", "future"); }));
    promise.set(21);
  });
  EXPECT_EQ(waiter.get(), 42);
  thread.join();
}

TEST_P(FutureTest, values_may_be_void_or_move_only) {
  Promise<void> done;
  done.set();
  done.future().get();
  Promise<std::unique_ptr<int>> pointer;
  pointer.set(std::make_unique<int>(4));
  EXPECT_EQ(*pointer.future().get(), 4);
  EXPECT_EQ(*task("result").spawn([] { return std::make_unique<int>(5); }).get(), 5);
  const auto several = [] { return std::vector<std::unique_ptr<int>>(6); };
  EXPECT_EQ(task("results").spawn(several).get().size(), 6u);
  const auto pair = [several] { return std::pair(1, std::map<int, decltype(several())>()); };
  EXPECT_EQ(task("pair").spawn(pair).get().first, 1);
  const auto tuple = [several] { return std::tuple(several(), std::string("two")); };
  EXPECT_EQ(std::get<1>(task("tuple").spawn(tuple).get()), "two");
  const auto table = [several] { return std::map<int, decltype(several())>(); };
  EXPECT_TRUE(task("table").spawn(table).get().empty());
}

// ---- who gets the value ------------------------------------------------------------------------

// Counts how often a value is copied.
TEST_P(FutureTest, try_get_never_waits) {
  Promise<std::string> text;
  Promise<void> done;
  const Future<std::string> late = text.future();
  const Future<void> signal = done.future();
  EXPECT_EQ(late.try_get(), nullptr);
  EXPECT_FALSE(signal.try_get());
  text.set("x");
  done.set();
  ASSERT_NE(late.try_get(), nullptr);
  EXPECT_EQ(*late.try_get(), "x");
  EXPECT_EQ(late.try_get(), &late.get());
  EXPECT_TRUE(signal.try_get());
  Promise<int> fails;
  const Future<int> failed = fails.future();
  fails.set_exception(std::make_exception_ptr(Odd{8}));
  EXPECT_THROW((void)failed.try_get(), Odd);
  const Future<int> empty;
  EXPECT_THROW((void)empty.try_get(), Error);
  auto polled = task("result").spawn([] { return 9; });
  const int* value = nullptr;
  while ((value = polled.try_get()) == nullptr) yield();
  EXPECT_EQ(*value, 9);
}

TEST_P(FutureTest, an_exception_set_is_rethrown) {
  Promise<int> promise;
  promise.set_exception(std::make_exception_ptr(Odd{8}));
  auto waiter = task("waiter").spawn([future = promise.future()] { return future.get(); });
  EXPECT_THROW((void)waiter.get(), Odd);
  EXPECT_THROW((void)promise.future().get(), Odd);
}

struct Fragile {
  explicit Fragile(int value) {
    if (value < 0) throw Odd{value};
  }
};

TEST_P(FutureTest, a_value_that_cannot_be_constructed_is_an_exception_of_the_future) {
  Promise<Fragile> promise;
  promise.set(-3);
  EXPECT_THROW((void)promise.future().get(), Odd);
}

TEST_P(FutureTest, a_second_set_throws_and_names_the_promise) {
  Promise<int> promise("my promise");
  const int line = __LINE__ - 1;
  promise.set(1);
  for (int i = 0; i < 2; ++i) {
    try {
      if (i == 0) promise.set(2);
      if (i == 1) promise.set_exception(std::make_exception_ptr(Odd{2}));
      FAIL() << "not refused";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("my promise"), std::string::npos) << text;
      EXPECT_NE(text.find("future_test.cpp:" + std::to_string(line)), std::string::npos) << text;
    }
  }
  EXPECT_EQ(promise.future().get(), 1);
}

TEST_P(FutureTest, exactly_one_of_two_tasks_that_set_one_promise_is_refused) {
  for (int round = 0; round < scaled(200); ++round) {
    Promise<int> promise;
    std::atomic<int> refused = 0;
    finish([&] {
      for (int i = 0; i < 2; ++i) {
        task("setter").launch([&refused, promise, i] {
          try {
            promise.set(i);
          } catch (const Error&) {
            ++refused;
          }
        });
      }
    });
    ASSERT_EQ(refused.load(), 1);
  }
}

TEST_P(FutureTest, a_promise_dropped_unset_breaks_its_future) {
  std::optional<Promise<int>> promise(std::in_place, "dropped promise");
  Future<int> future = promise->future();
  Promise<int> copy = *promise;
  promise.reset();
  auto waiter = task("waiter").spawn([future] { return future.get(); });
  let_others_run();
  EXPECT_FALSE(future.ready());  // the copy could still set it
  copy = Promise<int>();
  EXPECT_THROW((void)waiter.get(), BrokenPromise);
  try {
    (void)future.get();
    FAIL() << "nothing was thrown";
  } catch (const BrokenPromise& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("dropped promise"), std::string::npos) << text;
  }
}

TEST_P(FutureTest, a_promise_kept_by_a_task_that_throws_breaks) {
  Promise<int> promise;
  Future<int> future = promise.future();
  auto setter = task("setter").spawn([promise = std::move(promise)] {
    yield();
    throw Odd{1};
  });
  EXPECT_THROW((void)future.get(), BrokenPromise);
  EXPECT_THROW(setter.get(), Odd);
}

TEST_P(FutureTest, futures_are_copied_and_moved_like_shared_pointers) {
  Promise<int> promise;
  Future<int> one = promise.future();
  Future<int> two = one;
  Future<int> three = std::move(one);
  EXPECT_FALSE(one.valid());
  EXPECT_TRUE(two.valid());
  one = two;
  Future<int>& self = one;
  one = self;
  promise.set(6);
  EXPECT_EQ(one.get() + two.get() + three.get(), 18);
  two = Future<int>();
  EXPECT_FALSE(two.valid());
  EXPECT_FALSE(two.ready());
  EXPECT_EQ(three.get(), 6);
}

TEST_P(FutureTest, an_empty_future_is_refused) {
  const Future<int> empty;
  EXPECT_THROW((void)empty.get(), Error);
  EXPECT_THROW(empty.wait(), Error);
  EXPECT_THROW(Future<void>().get(), Error);
  Promise<int> promise;
  promise.set(1);
  EXPECT_THROW((void)when_all(promise.future(), empty), Error);
  EXPECT_THROW((void)when_any(empty, promise.future()), Error);
  EXPECT_THROW((void)when_any(std::vector<Future<int>>{}), Error);
}

TEST_P(FutureTest, when_all_of_nothing_is_ready) {
  auto none = when_all();
  EXPECT_TRUE(none.ready());
  none.get();
  EXPECT_TRUE(when_all(std::vector<Future<int>>()).ready());
  task("after").in(none, when_all(none)).spawn([] {}).get();
}

TEST_P(FutureTest, when_all_completes_with_the_last) {
  Promise<int> number;
  Promise<std::string> text;
  auto work = task("work").spawn([] { yield(); });
  auto all = when_all(number.future(), text.future(), work);
  work.get();
  number.set(1);
  let_others_run();
  EXPECT_FALSE(all.ready());
  text.set("x");
  all.get();
  when_all(number.future(), text.future()).get();  // all complete already
}

TEST_P(FutureTest, when_all_rethrows_the_first_failure_in_argument_order) {
  Promise<void> first;
  Promise<void> second;
  Promise<void> third;
  const std::vector<Future<void>> parts{first.future(), second.future(), third.future()};
  auto all = when_all(parts);
  third.set_exception(std::make_exception_ptr(Odd{3}));
  second.set_exception(std::make_exception_ptr(Odd{2}));
  EXPECT_FALSE(all.ready());  // also after a failure it waits for all
  first.set();
  try {
    all.get();
    FAIL() << "nothing was thrown";
  } catch (const Odd& caught) {
    EXPECT_EQ(caught.value, 2);
  }
}

TEST_P(FutureTest, a_task_after_when_any_runs_once_with_the_first_that_has_a_value) {
  for (int round = 0; round < scaled(100); ++round) {
    std::vector<Promise<int>> promises(3);
    std::vector<Future<int>> futures;
    for (const auto& promise : promises) futures.push_back(promise.future());
    std::atomic<int> runs = 0;
    int x = 0;
    auto listed = task("listed").in(when_any(futures)).inout(x).spawn([&] { ++runs; });
    auto named = task("named")
                     .in(when_any(futures[0], futures[1], task("other").spawn([] {})))
                     .inout(x).spawn([&] { ++runs; });
    promises[0].set_exception(std::make_exception_ptr(Odd{1}));
    let_others_run();
    EXPECT_FALSE(listed.ready());  // a failed future has no value
    std::thread second([&] { promises[1].set(1); });
    std::thread third([&] { promises[2].set(2); });
    named.get();
    second.join();
    third.join();
    EXPECT_EQ(runs, 2);
    EXPECT_THROW((void)futures[0].get(), Odd);
  }
}

TEST_P(FutureTest, a_task_after_when_any_does_not_run_if_all_fail) {
  Promise<void> first, second;
  auto task_after = task("after").in(when_any(first.future(), second.future())).spawn([] {});
  first.set_exception(std::make_exception_ptr(Odd{1}));
  second.set_exception(std::make_exception_ptr(Odd{2}));
  EXPECT_THROW(task_after.get(), DependencyFailed);
  for (const auto& promise : {first, second}) EXPECT_THROW(promise.future().get(), Odd);
}

TEST_P(FutureTest, when_all_of_many_tasks) {
  const int count = scaled(2000);
  std::vector<Future<int>> parts;
  for (int i = 0; i < count; ++i) {
    parts.push_back(task("part").spawn([i] {
      if (i % 3 == 0) yield();
      return i;
    }));
  }
  when_all(parts).get();
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(parts[i].ready());
    ASSERT_EQ(parts[i].get(), i);
  }
}

TEST_P(FutureTest, when_any_tells_the_position_of_the_first) {
  Promise<int> number;
  Promise<std::string> text;
  Promise<void> nothing;
  auto any = when_any(number.future(), text.future(), nothing.future());
  let_others_run();
  EXPECT_FALSE(any.ready());
  text.set("x");
  EXPECT_EQ(any.get(), 1u);
  number.set(3);
  nothing.set();
  EXPECT_EQ(any.get(), 1u);
  auto next = when_any(std::vector<Future<int>>{Promise<int>().future()});
  EXPECT_THROW((void)next.get(), BrokenPromise);  // all have failed
}

TEST_P(FutureTest, when_any_passes_over_what_fails_and_fails_if_all_do) {
  for (int round = 0; round < 2; ++round) {
    Promise<int> first;
    Promise<int> second;
    auto any = when_any(first.future(), second.future());
    auto dependent = task("dependent").in(any).spawn([] {});
    first.set_exception(std::make_exception_ptr(Odd{1}));
    let_others_run();
    EXPECT_FALSE(any.ready());
    if (round == 0) {
      second.set(2);
      EXPECT_EQ(any.get(), 1u);
      dependent.get();
    } else {
      second.set_exception(std::make_exception_ptr(Odd{2}));
      EXPECT_THROW((void)any.get(), Odd);
      EXPECT_THROW(dependent.get(), DependencyFailed);
      EXPECT_THROW((void)second.future().get(), Odd);
    }
    EXPECT_THROW((void)first.future().get(), Odd);
  }
}

TEST_P(FutureTest, when_any_of_a_complete_one_is_complete) {
  Promise<int> never;
  Promise<int> done;
  done.set(1);
  auto any = when_any(never.future(), done.future());
  EXPECT_TRUE(any.ready());
  EXPECT_EQ(any.get(), 1u);
}

TEST_P(FutureTest, when_any_of_one_future_given_twice) {
  Promise<int> promise;
  auto any = when_any(promise.future(), promise.future());
  auto all = when_all(promise.future(), promise.future());
  promise.set(1);
  EXPECT_LE(any.get(), 1u);
  all.get();
}

TEST_P(FutureTest, joint_futures_may_be_nested_and_dropped) {
  std::deque<Promise<void>> promises(4);
  {
    auto dropped = when_any(promises[0].future(), promises[1].future());
    auto dropped_too = when_all(promises[0].future(), promises[2].future());
  }
  auto pairs = when_all(when_any(promises[0].future(), promises[1].future()),
                        when_all(promises[2].future(), promises[3].future()));
  for (const int i : {3, 2, 1}) {
    EXPECT_FALSE(pairs.ready()) << "before promise " << i << " is set";
    promises[i].set();
  }
  pairs.get();
}

// Tells when the last value is gone.
struct Watched {
  explicit Watched(bool& its_flag) : gone(&its_flag) {}
  ~Watched() { *gone = true; }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  bool* gone;
};

TEST_P(FutureTest, a_builder_keeps_what_it_was_given_until_it_is_gone) {
  bool gone = false;
  bool ran = false;
  {
    auto next = [&] {
      Promise<Watched> promise;
      promise.set(gone);
      return task("next").in(promise.future());
    }();
    EXPECT_FALSE(gone);
    auto other = next;  // has references of its own
    next = task("another");
    EXPECT_FALSE(gone);
    next = other;
    next.spawn([&ran] { ran = true; }).get();
    EXPECT_FALSE(gone);  // it may be used again
  }
  EXPECT_TRUE(ran);
  EXPECT_TRUE(gone);
}

TEST_P(FutureTest, a_builder_keeps_many_futures_of_all_kinds) {
  std::deque<Promise<int>> promises(20);
  std::atomic<int> set = 0;
  finish([&] {
    TaskBuilder next = task("next");
    for (Promise<int>& promise : promises) {
      next = next.in(promise.future(), when_all(promise.future()), when_any(promise.future()));
      next = next.in(set);
    }
    next = next.in(task("setter").spawn([&] {
      for (Promise<int>& promise : promises) promise.set(++set);
    }));
    let_others_run();
    next.launch([&] { EXPECT_EQ(set.load(), 20); });
    next.launch([&] { EXPECT_EQ(set.load(), 20); });
  });
}

TEST_P(FutureTest, a_thread_of_the_program_blocks_in_get) {
  Promise<int> promise;
  auto doubled = task("doubled").spawn([future = promise.future()] { return future.get() * 2; });
  std::atomic<int> got = 0;
  std::atomic<bool> broken = false;
  std::optional<Promise<int>> dropped(std::in_place);
  std::thread thread([&, doubled, lost = dropped->future()] {
    got = doubled.get();
    try {
      (void)lost.get();
    } catch (const BrokenPromise&) {
      broken = true;
    }
  });
  promise.set(5);
  dropped.reset();
  // The root task is one of the workers: it must not stand in join() while a task has to run.
  while (!broken.load()) yield();
  thread.join();
  EXPECT_EQ(got.load(), 10);
  EXPECT_TRUE(broken.load());
}

TEST_P(FutureTest, one_future_wakes_many_tasks) {
  const int tasks = scaled(1000);
  Promise<int> promise;
  std::atomic<long> sum = 0;
  finish([&] {
    for (int i = 0; i < tasks; ++i) {
      task("waiter").launch([&sum, future = promise.future()] { sum += future.get(); });
    }
    task("setter").launch([promise] { promise.set(3); });
  });
  EXPECT_EQ(sum.load(), 3L * tasks);
}

// The others come while the parent runs the task in place, or just before or after.
void pass_time(const int round) {
  volatile int passed = 0;
  while (passed < 20 * (round % 64)) passed = passed + 1;
}

TEST_P(FutureTest, one_object_is_used_by_many_tasks_at_a_time) {
  constexpr int users = 4;
  for (int round = 0; round < scaled(300); ++round) {
    std::atomic<int> got = 0;
    Future<int> future;
    std::atomic<const Future<int>*> shared = nullptr;
    const auto await_shared = [&shared]() -> const Future<int>& {
      while (shared.load() == nullptr) yield();
      return *shared.load();
    };
    finish([&] {
      for (int i = 0; i < users; ++i) {
        task("gets").launch([&] { got += await_shared().get() == round ? 1 : 0; });
        task("copies").launch([&] {
          const Future<int> copy = await_shared();
          got += copy.get() == round ? 1 : 0;
        });
        task("follows").launch([&] {
          task("after").in(await_shared()).launch([&got] { ++got; });
          when_all(*shared.load()).get();
          ++got;
        });
      }
      if (round % 2 == 0) yield();
      future = task("shared").spawn([round] {
        pass_time(round);
        return round;
      });
      shared = &future;
      got += future.get() == round ? 1 : 0;
    });
    ASSERT_EQ(got.load(), 4 * users + 1);
  }
}

TEST_P(FutureTest, threads_of_the_program_share_one_object_with_tasks) {
  const int rounds = scaled(500);
  std::atomic<int> got = 0;
  std::atomic<const Future<int>*> shared = nullptr;
  std::thread thread([&] {
    const Future<int>* before = nullptr;
    for (int round = 0; round < rounds; ++round) {
      const Future<int>* now = shared.load();
      for (; now == before; now = shared.load()) std::this_thread::yield();
      got += now->get() == round ? 1 : 0;
      before = now;
    }
  });
  std::deque<Future<int>> futures;
  for (int round = 0; round < rounds; ++round) {
    futures.push_back(task("shared").spawn([round] {
      pass_time(round);
      return round;
    }));
    shared = &futures.back();
    (void)futures.back().get();
    while (got.load() != round + 1) yield();
  }
  thread.join();
}

TEST_P(FutureTest, a_task_sees_nothing_of_the_exceptions_of_who_waits_for_it) {
  const auto look = [] {
    yield();
    return std::uncaught_exceptions() == 0 && std::current_exception() == nullptr;
  };
  struct Waits {
    const decltype(look)& look_there;
    bool& clean;
    ~Waits() { clean = task("in a destructor").spawn(look_there).get(); }
  };
  bool clean = false;
  try {
    const Waits waits{look, clean};
    throw Odd{1};
  } catch (const Odd& odd) {
    EXPECT_TRUE(clean);
    EXPECT_TRUE(task("in a handler").spawn(look).get());
    EXPECT_TRUE(task("in a handler").spawn([] { return !std::current_exception(); }).get());
    EXPECT_EQ(odd.value, 1);
  }
  EXPECT_TRUE(task("after").spawn(look).get());
}

long resident_bytes() {
  std::ifstream file("/proc/self/statm");
  long pages = 0;
  long resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST_P(FutureMemoryTest, a_million_when_any_with_one_that_never_completes_leave_no_waiter) {
  const int rounds = scaled(1'000'000);
  Promise<void> never("never set");
  const Future<void> never_done = never.future();
  long early = 0;
  for (int i = 0; i < rounds; ++i) {
    Promise<int> promise;
    auto any = when_any(never_done, promise.future());
    promise.set(i);
    ASSERT_EQ(any.get(), 1u);
    if (i == rounds / 10) early = resident_bytes();
  }
  if (!sanitized) {  // a sanitizer's quarantine grows by itself
    EXPECT_LE(resident_bytes(), early + (8L << 20));
  }
}

TEST_P(FutureMemoryTest, a_waiter_of_a_dropped_when_any_is_taken_back) {
  const int rounds = scaled(500'000);
  Promise<void> never("never set");
  Promise<void> other("never set either");
  long early = 0;
  for (int i = 0; i < rounds; ++i) {
    { auto dropped = when_any(never.future(), other.future()); }
    if (i == rounds / 10) early = resident_bytes();
  }
  if (!sanitized) {
    EXPECT_LE(resident_bytes(), early + (8L << 20));
  }
}

// Chains of joint futures: what fires, drops, or raises them must not recurse.
class FutureChainTest : public OnRuntime {
 protected:
  const int links = scaled(1'000'000);
};
INSTANTIATE_TEST_SUITE_P(All, FutureChainTest,
                         testing::ValuesIn(setups({1, 2}, {"", "priority", "ga"})), name_of);

TEST_P(FutureChainTest, a_million_when_all_are_fired_by_the_first) {
  Promise<void> first;
  Promise<void> done;
  done.set();
  Future<void> all = first.future();
  for (int i = 0; i < links; ++i) all = when_all(all, done.future());
  auto after = task("after").priority(1).in(all).spawn([] { return 1; });
  auto waiter = task("waiter").spawn([all] {
    all.get();
    return 2;
  });
  let_others_run();
  EXPECT_FALSE(all.ready());
  first.set();
  EXPECT_EQ(after.get() + waiter.get(), 3);
}

TEST_P(FutureChainTest, a_million_when_any_of_what_has_failed_carry_its_error) {
  Promise<void> first;
  Future<std::size_t> any = when_any(first.future());
  for (int i = 1; i < links; ++i) any = when_any(any, any);
  first.set_exception(std::make_exception_ptr(Odd{1}));
  EXPECT_TRUE(any.ready());
  EXPECT_THROW((void)any.get(), Odd);
}

TEST_P(FutureChainTest, a_million_joints_of_what_never_completes_are_dropped) {
  Promise<void> never;
  Future<void> joint = never.future();
  for (int i = 0; i < links; ++i) {
    joint = i % 2 == 0 ? when_all(joint, never.future())
                       : when_all(when_any(never.future(), joint));
  }
}

TEST_P(FutureChainTest, the_error_of_the_first_goes_through_the_chain) {
  Promise<void> first;
  Future<void> all = first.future();
  for (int i = 0; i < links / 10; ++i) all = when_all(all);
  first.set_exception(std::make_exception_ptr(Odd{7}));
  EXPECT_THROW(all.get(), Odd);
}

TEST_P(FutureChainTest, a_task_reached_by_many_paths_is_visited_once) {
  Promise<void> first;
  Future<void> all = when_all(first.future(), task("part").in(first.future()).spawn([] {}));
  for (int i = 0; i < 100; ++i) {  // 2^100 ways
    all = when_all(all, all);
    task("after").priority(i).in(all).launch([] {});
  }
  int here = 0;
  auto waiter = task("waiter").priority(1000).out(here).spawn([all] { all.get(); });
  let_others_run();
  first.set();
  waiter.get();
}

TEST_P(FutureChainTest, a_task_may_wait_at_each_link) {
  const int tasks = scaled(20'000);
  Promise<void> first;
  Future<void> all = first.future();
  std::atomic<int> ran = 0;
  finish([&] {
    for (int i = 0; i < tasks; ++i) {
      all = when_all(all, task("part").in(all).priority(1).spawn([&ran] { ++ran; }));
    }
    first.set();
  });
  EXPECT_EQ(ran.load(), tasks);
  all.get();
}

}  // namespace
}  // namespace imbrex::test
