// SPDX-License-Identifier: BSD-3-Clause
// Tasks through the public interface: bodies, results, exceptions, nesting, finish and taskwait.
// switch_test.cpp has the tests of yield, resume and release.
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "core/on_runtime.hpp"
#include "imbrex/detail/observation.hpp"

namespace imbrex::test {
namespace {

class TaskTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, TaskTest, testing::ValuesIn(every_setup()), name_of);

class TaskOrderTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(OneWorker, TaskOrderTest, testing::ValuesIn(setups({1}, {"priority"})),
                         name_of);

struct Odd {  // an exception that is no std::exception
  int value;
};

TEST_P(TaskTest, the_result_of_a_body_is_in_its_future) {
  auto number = task("number").spawn([] { return 42; });
  EXPECT_EQ(number.get(), 42);
  EXPECT_TRUE(number.ready());
  EXPECT_EQ(number.get(), 42);  // again: get() of an lvalue leaves the value there
}

TEST_P(TaskTest, results_may_be_void_move_only_and_large) {
  task("void").spawn([] {}).get();
  auto pointer = task("pointer").spawn([] { return std::make_unique<int>(7); });
  EXPECT_EQ(*std::move(pointer).get(), 7);
  auto text = task("text").spawn([] { return std::string(1000, 'x'); });
  EXPECT_EQ(text.get(), std::string(1000, 'x'));
  auto large = task("large").spawn([] {
    std::array<int, 20'000> values;
    std::iota(values.begin(), values.end(), 1);
    return values;
  });
  EXPECT_EQ(large.get().back(), 20'000);
}

// Methodology: each name is overwritten, or its string is gone, before the task runs.
TEST_P(TaskTest, a_name_that_is_made_at_run_time_is_copied) {
  Promise<void> gate;
  std::vector<Future<std::string>> described;
  const auto describe = [&gate] {
    gate.future().get();
    return detail::describe_current_task();
  };
  char buffer[] = "in a buffer";
  const char* const pointer = buffer;
  described.push_back(task(buffer).spawn(describe));
  described.push_back(task(pointer).spawn(describe));
  described.push_back(task(std::string_view(buffer).substr(5)).spawn(describe));
  for (int i = 0; i < 3; ++i) {
    const std::string name = "a name of more than a few letters: " + std::to_string(i);
    described.push_back(task(name).spawn(describe));
    described.push_back(task(name + "!").spawn(describe));
  }
  std::string(buffer).assign(11, '?').copy(buffer, 11);
  gate.set();
  const char* const expected[] = {"\"in a buffer\"", "\"in a buffer\"", "\"buffer\""};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(described[i].get().find(expected[i]), 0u);
  for (int i = 0; i < 6; ++i) {
    const std::string name = "\"a name of more than a few letters: " + std::to_string(i / 2) +
                             (i % 2 == 0 ? "\"" : "!\"");
    EXPECT_EQ(described[3 + i].get().find(name), 0u) << described[3 + i].get();
  }
  EXPECT_EQ(Name(pointer).text(), Name(std::string(11, '?')).text()) << "one copy of each text";
}

TEST_P(TaskTest, an_unlimited_number_of_tasks_each_runs_once) {
  const int count = scaled(20'000);
  std::vector<std::atomic<int>> runs(count);
  finish([&] {
    for (int i = 0; i < count; ++i) {
      task("count").launch([&runs, i] { runs[i].fetch_add(1, std::memory_order_relaxed); });
    }
  });
  for (int i = 0; i < count; ++i) ASSERT_EQ(runs[i].load(), 1) << "task " << i;
}

TEST_P(TaskTest, a_task_whose_future_is_dropped_runs_all_the_same) {
  std::atomic<int> runs = 0;
  finish([&] {
    for (int i = 0; i < 100; ++i) task("dropped").spawn([&runs] { return ++runs; });
  });
  EXPECT_EQ(runs.load(), 100);
}

TEST_P(TaskTest, an_exception_is_rethrown_at_every_get) {
  auto failing = task("failing").spawn([]() -> int { throw std::out_of_range("far"); });
  for (int i = 0; i < 2; ++i) EXPECT_THROW((void)failing.get(), std::out_of_range);
  auto odd = task("odd").spawn([] { throw Odd{5}; });
  try {
    odd.get();
    FAIL() << "nothing was thrown";
  } catch (const Odd& caught) {
    EXPECT_EQ(caught.value, 5);
  }
  failing.wait();  // throws nothing of the task's
}

TEST_P(TaskTest, finish_rethrows_what_a_task_threw_also_a_deep_one) {
  EXPECT_THROW(finish([] { task("child").spawn([] { throw Odd{1}; }); }), Odd);
  EXPECT_THROW(finish([] {
                 task("child").spawn([] {
                   task("grandchild").spawn([] { throw std::length_error("deep"); });
                 });
               }),
               std::length_error);
  finish([] { task("after").spawn([] {}); });  // nothing of it is left
}

TEST_P(TaskTest, finish_names_the_first_error_and_the_number_of_others) {
  try {
    finish([] {
      int order = 0;  // by its address alone: the three run one after the other
      task("one").inout(order).spawn([] { throw Error("imbrex test: the first"); });
      task("two").inout(order).spawn([] { throw Error("imbrex test: the second"); });
      task("three").inout(order).spawn([] { throw Error("imbrex test: the third"); });
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("the first"), std::string::npos) << text;
    EXPECT_EQ(text.find("the second"), std::string::npos) << text;
    EXPECT_NE(text.find('2'), std::string::npos) << text;
  }
}

TEST_P(TaskTest, finish_rethrows_its_own_body_first_and_still_waits) {
  std::atomic<int> done = 0;
  EXPECT_THROW(finish([&] {
                 for (int i = 0; i < 10; ++i) {
                   task("slow").spawn([&done] {
                     yield();
                     ++done;
                     throw std::length_error("of a task");
                   });
                 }
                 throw Odd{2};
               }),
               Odd);
  EXPECT_EQ(done.load(), 10);
}

int fib(int n) {
  if (n < 2) return n;
  auto left = task("fib").spawn([n] { return fib(n - 1); });
  const int right = fib(n - 2);
  return left.get() + right;
}

TEST_P(TaskTest, recursive_tasks_get_the_results_of_their_children) {
  EXPECT_EQ(fib(sanitized ? 10 : 16), sanitized ? 55 : 987);
}

void spread(std::atomic<int>& count, int depth) {
  if (depth == 0) {
    yield();
    count.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  for (int i = 0; i < 4; ++i) task("spread").launch([&count, depth] { spread(count, depth - 1); });
}

TEST_P(TaskTest, finish_waits_for_all_descendants) {
  std::atomic<int> count = 0;
  finish([&] { spread(count, 4); });
  EXPECT_EQ(count.load(), 256);
}

TEST_P(TaskTest, finish_waits_for_its_own_tasks_only) {
  Promise<void> gate;
  std::atomic<bool> outer_done = false;
  auto outer = task("outer").spawn([&] {
    gate.future().get();
    outer_done = true;
  });
  std::atomic<bool> inner_done = false;
  finish([&] { task("inner").spawn([&] { inner_done = true; }); });
  EXPECT_TRUE(inner_done.load());
  EXPECT_FALSE(outer_done.load());
  gate.set();
  outer.get();
}

TEST_P(TaskTest, finish_may_be_nested_and_empty) {
  std::atomic<int> count = 0;
  finish([] {});
  finish([&] {
    task("outer").spawn([&] {
      finish([&] {
        task("inner").spawn([&] {
          finish([&] { task("innermost").spawn([&] { ++count; }); });
          EXPECT_EQ(count.load(), 1);
          ++count;
        });
      });
      EXPECT_EQ(count.load(), 2);
      ++count;
    });
  });
  EXPECT_EQ(count.load(), 3);
}

TEST_P(TaskTest, taskwait_waits_for_children_but_not_for_their_descendants) {
  Promise<void> gate;
  std::atomic<bool> child_done = false;
  std::atomic<bool> grandchild_done = false;
  finish([&] {
    task("parent").spawn([&] {
      task("child").spawn([&] {
        task("grandchild").spawn([&] {
          gate.future().get();  // fired only after the taskwait has returned
          grandchild_done = true;
        });
        child_done = true;
      });
      taskwait();
      EXPECT_TRUE(child_done.load());
      EXPECT_FALSE(grandchild_done.load());
      gate.set();
    });
  });
  EXPECT_TRUE(grandchild_done.load());
}

TEST_P(TaskTest, taskwait_waits_for_the_children_of_the_root_task) {
  std::atomic<int> done = 0;
  for (int i = 0; i < 50; ++i) {
    task("child").launch([&] {
      yield();
      ++done;
    });
  }
  taskwait();
  EXPECT_EQ(done.load(), 50);
  taskwait();  // none are left
}

TEST_P(TaskTest, taskwait_rethrows_nothing) {
  auto failing = task("failing").spawn([] { throw Odd{3}; });
  taskwait();
  EXPECT_TRUE(failing.ready());
  EXPECT_THROW(failing.get(), Odd);
}

TEST_P(TaskTest, closures_may_be_move_only_large_and_over_aligned) {
  auto owned = std::make_unique<int>(11);
  EXPECT_EQ(task("move").spawn([owned = std::move(owned)] { return *owned; }).get(), 11);

  std::array<unsigned char, 100'000> bytes;
  bytes.fill(3);
  auto sum = task("large").spawn([bytes] {
    return std::accumulate(bytes.begin(), bytes.end(), 0);
  });
  EXPECT_EQ(sum.get(), 300'000);

  struct alignas(64) Line {
    int value = 9;
  };
  auto line = task("aligned").spawn([line = Line()] {
    return reinterpret_cast<std::uintptr_t>(&line) % 64 == 0 ? line.value : -1;
  });
  EXPECT_EQ(line.get(), 9);
}

// Counts its living instances, and may throw when it is copied.
struct Counted {
  explicit Counted(std::atomic<int>& count) : live(&count) { ++*live; }
  Counted(const Counted& other) : live(other.live), fragile(other.fragile) {
    if (fragile) throw Odd{4};
    ++*live;
  }
  ~Counted() { --*live; }
  std::atomic<int>* live;
  bool fragile = false;
};

TEST_P(TaskTest, a_closure_is_destroyed_before_its_dependents_run) {
  std::atomic<int> live = 0;
  for (int i = 0; i < 50; ++i) {
    int x = 0;
    auto writer = task("writer").out(x).spawn([held = Counted(live)] { yield(); });
    auto reader = task("reader").in(x).spawn([&] { return live.load(); });
    auto after = task("after").in(writer).spawn([&] { return live.load(); });
    EXPECT_EQ(reader.get(), 0);
    EXPECT_EQ(after.get(), 0);
  }
}

TEST_P(TaskTest, a_closure_is_destroyed_although_its_body_throws) {
  std::atomic<int> live = 0;
  auto failing = task("failing").spawn([held = Counted(live)] { throw Odd{6}; });
  EXPECT_THROW(failing.get(), Odd);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(TaskTest, a_result_lives_as_long_as_its_last_future) {
  std::atomic<int> live = 0;
  auto first = task("counted").spawn([&live] { return Counted(live); });
  first.wait();
  EXPECT_EQ(live.load(), 1);
  auto second = first;
  first = {};
  EXPECT_EQ(live.load(), 1);
  second = {};
  EXPECT_EQ(live.load(), 0);
  finish([&] { task("dropped").spawn([&live] { return Counted(live); }); });
  // The worker drops the last reference after the scope was told.
  EXPECT_TRUE(comes_true([&live] { return live.load() == 0; }));
}

TEST_P(TaskTest, a_body_that_cannot_be_copied_makes_spawn_throw_and_leaves_nothing) {
  std::atomic<int> live = 0;
  struct Body {
    Counted held;
    int operator()() const { return 1; }
  } body{Counted(live)};
  body.held.fragile = true;
  int x = 0;
  EXPECT_THROW(task("fragile").inout(x).spawn(body), Odd);
  EXPECT_THROW(finish([&] { task("fragile").inout(x).spawn(body); }), Odd);
  EXPECT_EQ(task("next").inout(x).spawn([] { return 2; }).get(), 2);
}

TEST_P(TaskTest, a_task_may_have_many_accesses) {
  std::array<unsigned, 40> cells{};
  auto add_all = [&cells](TaskBuilder builder, unsigned amount) {
    for (unsigned& cell : cells) (void)builder.inout(cell);
    builder.spawn([&cells, amount] {
      for (unsigned& cell : cells) cell = cell * 3 + amount;
    });
  };
  finish([&] {
    for (unsigned i = 0; i < 20; ++i) add_all(task("many"), i);
  });
  unsigned expected = 0;
  for (unsigned i = 0; i < 20; ++i) expected = expected * 3 + i;
  for (const unsigned cell : cells) EXPECT_EQ(cell, expected);
}

TEST_P(TaskTest, a_builder_that_is_never_spawned_creates_nothing) {
  const std::uint64_t before = statistics().live_tasks;
  int x = 0;
  {
    TaskBuilder unused = task("unused");
    (void)unused.inout(x).priority(3);
  }
  EXPECT_EQ(statistics().live_tasks, before);
  EXPECT_EQ(task("next").in(x).spawn([] { return 1; }).get(), 1);
}

TEST_P(TaskTest, a_task_knows_its_name_and_its_spawn_site) {
  auto text = task("the name").spawn([] { return detail::describe_current_task(); });
  const int line = __LINE__ - 1;
  EXPECT_NE(text.get().find("the name"), std::string::npos) << text.get();
  const std::string site = "task_test.cpp:" + std::to_string(line);
  EXPECT_NE(text.get().find(site), std::string::npos) << text.get();
}

TEST_P(TaskTest, statistics_count_the_tasks_that_have_run) {
  const std::uint64_t before = statistics().tasks;
  finish([] {
    for (int i = 0; i < 100; ++i) task("counted").launch([] {});
  });
  EXPECT_EQ(worker_count(), GetParam().workers);
  (void)comes_true([before] { return statistics().tasks >= before + 100; });
  EXPECT_EQ(statistics().tasks, before + 100);
}

// A thread that looks at all slots meanwhile sees such as change hands: ThreadSanitizer judges.
TEST_P(TaskTest, statistics_may_be_asked_while_tasks_come_and_go) {
  std::atomic<bool> over = false;
  std::thread looks([&over] {
    do {
      const Statistics now = statistics();
      EXPECT_LE(now.suspended_tasks, now.live_tasks);
    } while (!over);
  });
  for (int i = 0; i < 200; ++i) {
    finish([] {
      for (int child = 0; child < 10; ++child) task("short").launch([] {});
    });
  }
  over = true;
  looks.join();
}

// Workers leave alone what its creator will soon run itself, and are the slower to take more where
// tasks were too short to be worth it; but they take it.
TEST_P(TaskTest, another_worker_runs_the_children_of_a_busy_task) {
  if (GetParam().workers == 1 || GetParam().policy == std::string_view("seeded:2026")) {
    return;  // one worker runs at a time
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < scaled(2000); ++i) task("short").launch([] {});
    std::atomic<bool> ran{false};
    task("last").launch([&ran] { ran.store(true, std::memory_order_release); });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!ran.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < deadline) {
    }
    EXPECT_TRUE(ran.load());
    taskwait();
  }
}

TEST_P(TaskOrderTest, the_task_of_the_highest_priority_starts_first) {
  Log log;
  finish([&] {
    for (const int level : {0, 3, -2, 7, 5, -9, 1}) {
      task("level").priority(level).launch([&log, level] { log.add(level); });
    }
  });
  EXPECT_EQ(log.entries(), (std::vector<int>{7, 5, 3, 1, 0, -2, -9}));
}

TEST_P(TaskOrderTest, a_resumed_task_goes_before_new_ones_of_its_level) {
  Log log;
  Promise<void> gate;
  finish([&] {
    task("waiter").priority(1).launch([&] {
      gate.future().get();
      log.add(0);
    });
    yield();  // it starts, and suspends
    for (int i = 1; i < 4; ++i) task("new").priority(1).launch([&log, i] { log.add(i); });
    gate.set();
  });
  ASSERT_EQ(log.entries().size(), 4u);
  EXPECT_EQ(log.entries()[0], 0);
}

}  // namespace
}  // namespace imbrex::test
