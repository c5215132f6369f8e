// SPDX-License-Identifier: BSD-3-Clause
// Loops whose graph is built once: which instances run, in which order, and what a task may do.
// iterate_end_test.cpp has the tests of how a loop ends, and of what it refuses. Methodology: a
// loop is compared with a plain loop, and promises keep tasks back.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class IterateTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, IterateTest, testing::ValuesIn(every_policy({1, 2, 8})), name_of);

class IterateOrderTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(OneWorker, IterateOrderTest, testing::ValuesIn(setups({1}, {"priority"})),
                         name_of);

// ---- which instances run -----------------------------------------------------------------------

TEST_P(IterateTest, each_iteration_runs_once_and_knows_its_number) {
  for (const std::int64_t count : {1, 2, 3, 100}) {
    std::vector<std::atomic<int>> by_parameter(static_cast<std::size_t>(count));
    std::vector<std::atomic<int>> by_call(static_cast<std::size_t>(count));
    int calls = 0;
    iterate(count, [&](const std::int64_t i) {
      EXPECT_EQ(i, 0);
      ++calls;
      task("by parameter").launch([&](const int at) { ++by_parameter.at(at); });
      task("by call").launch([&] { ++by_call.at(iteration()); });
    });
    EXPECT_EQ(calls, 1);
    for (const auto& each : by_parameter) EXPECT_EQ(each.load(), 1);
    for (const auto& each : by_call) EXPECT_EQ(each.load(), 1);
  }
}

TEST_P(IterateTest, a_count_of_zero_or_below_does_nothing) {
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
    iterate(count, [](std::int64_t) { FAIL() << "the body was called"; });
  }
}

TEST_P(IterateTest, a_period_may_be_longer_than_the_loop_and_need_not_divide_it) {
  for (const std::int64_t period : {1, 2, 3, 5, 1000}) {
    for (const std::int64_t count : {1, 2, 4, 7, 15}) {
      Log log;
      int chain = 0;
      std::vector<std::int64_t> calls;
      iterate(count, {.period = period}, [&](const std::int64_t i) {
        calls.push_back(i);
        task("step").inout(chain).launch([&log, i, period](const std::int64_t at) {
          EXPECT_EQ(at % period, i);
          log.add(static_cast<int>(at));
        });
      });
      std::vector<int> expected(static_cast<std::size_t>(count));
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(log.entries(), expected);
      EXPECT_EQ(static_cast<std::int64_t>(calls.size()), std::min(period, count));
    }
  }
}

TEST_P(IterateTest, an_iteration_of_the_period_may_have_no_task) {
  std::atomic<int> sum = 0;
  iterate(10, {.period = 3}, [&](const std::int64_t i) {
    if (i == 1) task("second of three").launch([&](const int at) { sum += at; });
  });
  EXPECT_EQ(sum.load(), 1 + 4 + 7);
}

TEST_P(IterateTest, a_long_period_with_a_small_count_needs_no_memory) {
  int runs = 0;
  iterate(2, {.period = UINT32_MAX}, [&](std::int64_t) {
    task("one").inout(runs).decides().launch([&runs] { ++runs; });
  });
  EXPECT_EQ(runs, 2);
}

TEST_P(IterateTest, a_huge_count_may_stop_soon) {
  int runs = 0;
  iterate(INT64_MAX, [&](std::int64_t) {
    task("one").inout(runs).decides().launch([&runs] {
      if (++runs == 5) stop_iterating();
    });
  });
  EXPECT_EQ(runs, 5);
}

TEST_P(IterateTest, the_iteration_is_known_in_children_and_nowhere_outside) {
  EXPECT_EQ(iteration(), -1);
  std::atomic<int> wrong = 0;
  const auto expect = [&wrong](const std::int64_t wanted) {
    if (iteration() != wanted) ++wrong;
  };
  iterate(4, [&](std::int64_t) {
    EXPECT_EQ(iteration(), -1);
    task("parent").launch([&](const std::int64_t i) {
      finish([&] {
        task("child").launch([&, i] {
          expect(i);
          task("grandchild").launch([&, i] {
            yield();
            expect(i);
          });
        });
      });
      iterate(2, [&](std::int64_t) {
        task("inner").launch([&](const std::int64_t inner) { expect(inner); });
      });
      std::thread([&] { expect(-1); }).join();
      expect(i);
    });
  });
  task("after").spawn([&] { expect(-1); }).get();
  EXPECT_EQ(wrong.load(), 0);
}

// ---- order -------------------------------------------------------------------------------------

TEST_P(IterateTest, a_stencil_equals_plain_loops) {
  constexpr int cells = 40;
  const int count = scaled(200) + 1;
  const auto next = [](unsigned left, unsigned own, unsigned right) {
    return 3 * left + 5 * own + 7 * right + 1;
  };
  std::array<unsigned, cells + 2> u[2] = {};
  std::array<unsigned, cells + 2> plain[2] = {};
  std::iota(u[0].begin(), u[0].end(), 1u);
  u[1] = plain[1] = plain[0] = u[0];
  iterate(count, {.period = 2}, [&](const std::int64_t i) {
    auto& from = u[i % 2];
    auto& to = u[1 - i % 2];
    for (int at = 1; at <= cells; ++at) {
      task("cell").in(from[at - 1], from[at], from[at + 1]).out(to[at]).launch([&, at] {
        to[at] = next(from[at - 1], from[at], from[at + 1]);
      });
    }
  });
  for (int i = 0; i < count; ++i) {
    auto& from = plain[i % 2];
    for (int at = 1; at <= cells; ++at) {
      plain[1 - i % 2][at] = next(from[at - 1], from[at], from[at + 1]);
    }
  }
  EXPECT_EQ(u[0], plain[0]);
  EXPECT_EQ(u[1], plain[1]);
}

TEST_P(IterateTest, several_chains_keep_their_order_through_all_iterations) {
  std::array<unsigned, 5> chains{};
  const int count = scaled(2000);
  iterate(count, [&](std::int64_t) {
    for (unsigned& chain : chains) {
      for (unsigned step = 1; step <= 3; ++step) {
        task("step").inout(chain).launch([&chain, step](const std::int64_t i) {
          chain = chain * 31 + step + static_cast<unsigned>(i);
        });
      }
    }
  });
  unsigned expected = 0;
  for (int i = 0; i < count; ++i) {
    for (unsigned step = 1; step <= 3; ++step) {
      expected = expected * 31 + step + static_cast<unsigned>(i);
    }
  }
  for (const unsigned chain : chains) EXPECT_EQ(chain, expected);
}

TEST_P(IterateTest, there_is_no_barrier_between_iterations) {
  Promise<void> gate;
  std::atomic<int> free_runs = 0;
  iterate(3, [&](std::int64_t) {
    task("waits").launch([&](const std::int64_t i) {
      if (i == 0) gate.future().get();
    });
    task("free").launch([&] {
      if (++free_runs == 3) gate.set();
    });
  });
  EXPECT_EQ(free_runs.load(), 3);
}

TEST_P(IterateTest, a_reader_and_a_writer_take_turns) {
  int value = 0;
  Log log;
  iterate(scaled(200), [&](std::int64_t) {
    task("write").out(value).launch([&](const std::int64_t i) { value = static_cast<int>(i); });
    for (int reader = 0; reader < 3; ++reader) {
      task("read").in(value).launch([&](const std::int64_t i) {
        yield();
        if (value != i) log.add(value);
      });
    }
  });
  EXPECT_TRUE(log.entries().empty());
}

// Methodology: the last set of an iteration and the first of the next are neighbours, and a plain
// counter shows two tasks that overlap.
TEST_P(IterateTest, mutexinoutset_excludes_also_across_two_iterations) {
  int inside = 0, wrong = 0, total = 0, between = 0;
  const auto enter = [&] {
    if (inside++ != 0) ++wrong;
    yield();
    ++total;
    --inside;
  };
  const int count = scaled(100) + 1;
  iterate(count, [&](std::int64_t) {
    task("first").mutexinoutset(total).launch(enter);
    task("second").mutexinoutset(total).launch(enter);
    task("all before").inout(total).launch([&] { between += total; });
    task("third").mutexinoutset(total).launch(enter);
    task("fourth").mutexinoutset(total).launch([&] {
      yield();
      enter();
    });
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(total, 4 * count);
  int expected = 0;
  for (int i = 0; i < count; ++i) expected += 4 * i + 2;
  EXPECT_EQ(between, expected);
}

TEST_P(IterateTest, a_single_task_of_a_mutexinoutset_excludes_the_one_of_the_next_iteration) {
  int inside = 0, wrong = 0;
  int object = 0;
  const auto enter = [&] {
    if (inside++ != 0) ++wrong;
    yield();
    --inside;
  };
  iterate(50, [&](std::int64_t) {
    task("begin").mutexinoutset(object).launch(enter);
    task("between").inout(object).launch([&] { ++object; });
    task("end").mutexinoutset(object).launch(enter);
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(object, 50);
}

TEST_P(IterateTest, inoutset_runs_together_and_the_next_set_follows) {
  std::atomic<int> sum = 0;
  int object = 0;
  std::atomic<int> wrong = 0;
  iterate(20, [&](std::int64_t) {
    for (int each = 0; each < 4; ++each) {
      task("add").inoutset(object).launch([&] {
        yield();
        ++sum;
      });
    }
    task("look").in(object).launch([&](const int i) {
      if (sum != 4 * (i + 1)) ++wrong;
    });
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(IterateTest, ranges_that_overlap_in_part_keep_their_order) {
  std::vector<unsigned> v(10), plain(10);
  const int count = scaled(100) + 1;
  struct Part {
    int from, length;
  };
  constexpr Part parts[] = {{0, 10}, {2, 3}, {4, 5}, {9, 1}, {0, 3}};
  const auto work = [](std::vector<unsigned>& values, const Part part, const unsigned i) {
    for (int at = part.from; at < part.from + part.length; ++at) {
      values[at] = values[at] * 3 + i + static_cast<unsigned>(part.length);
    }
  };
  iterate(count, [&](std::int64_t) {
    for (const Part part : parts) {
      task("part").inout(range(&v[part.from], part.length)).launch([&, part](const unsigned i) {
        if (part.length % 2 == 1) yield();
        work(v, part, i);
      });
    }
    task("one").inout(v[9]).launch([&] { v[9] *= 5; });
  });
  for (int i = 0; i < count; ++i) {
    for (const Part part : parts) work(plain, part, static_cast<unsigned>(i));
    plain[9] *= 5;
  }
  EXPECT_EQ(v, plain);
}

// The range stays in the table behind the object, which covers a part of it only.
TEST_P(IterateTest, a_range_with_objects_in_it_begins_no_iteration_too_early) {
  std::array<int, 10> v{};
  Log log;
  iterate(20, [&](std::int64_t) {
    task("range").mutexinoutset(range(&v[5], 5)).launch([&] { log.add(0); });
    task("object").mutexinoutset(v[9]).launch([&] {
      yield();
      log.add(1);
    });
    task("last").inout(v[9]).launch([&] { log.add(2); });
  });
  const std::vector<int> entries = log.entries();
  ASSERT_EQ(entries.size(), 60u);
  for (std::size_t at = 0; at < entries.size(); ++at) EXPECT_EQ(entries[at], at % 3) << at;
}

TEST_P(IterateTest, tasks_before_the_loop_come_first_and_tasks_behind_it_last) {
  int value = 0;
  Promise<void> gate;
  task("before").out(value).launch([&] {
    gate.future().get();
    value = 5;
  });
  task("sets").launch([&] {
    yield();
    gate.set();
  });
  iterate(3, [&](std::int64_t) {
    task("loop").inout(value).launch([&] { value = 2 * value + 1; });
    task("again").in(value).launch([] {});
  });
  EXPECT_EQ(value, 47);
  int seen = 0;
  task("after").in(value).out(seen).launch([&] { seen = value; });
  iterate(1, [&](std::int64_t) {
    task("next loop").in(seen).launch([&] { EXPECT_EQ(seen, 47); });
  });
}

// ---- what a task may do ------------------------------------------------------------------------

TEST_P(IterateTest, a_task_waits_for_a_task_of_the_same_iteration_and_for_a_thread) {
  std::array<Promise<int>, 10> by_task, by_thread;
  std::atomic<int> sum = 0;
  std::thread thread([&] {
    for (Promise<int>& promise : by_thread) promise.set(1);
  });
  iterate(10, [&](std::int64_t) {
    task("waits").launch([&](const int i) {
      sum += by_task[i].future().get() + by_thread[i].future().get();
    });
    task("sets").launch([&](const int i) {
      yield();
      by_task[i].set(i);
    });
  });
  thread.join();
  EXPECT_EQ(sum.load(), 45 + 10);
}

TEST_P(IterateTest, the_next_instance_follows_all_descendants) {
  std::atomic<int> alive = 0, wrong = 0, done = 0;
  iterate(scaled(50) + 2, [&](std::int64_t) {
    task("parent").launch([&] {
      if (alive != 0) ++wrong;
      for (int child = 0; child < 3; ++child) {
        ++alive;
        task("child").launch([&] {
          yield();
          task("grandchild").launch([&] {
            yield();
            ++done;
            --alive;
          });
        });
      }
    });
  });
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(done.load(), 3 * (scaled(50) + 2));
}

TEST_P(IterateTest, children_have_accesses_of_their_own) {
  int x = 0, wrong = 0;
  iterate(20, [&](std::int64_t) {
    task("parent").inout(x).launch([&](const int i) {
      int local = 0;
      finish([&] {
        task("one").out(local).launch([&] { local = 7; });
        task("two").inout(local).launch([&] { local += i; });
      });
      auto got = task("three").in(local).spawn([&] { return local; });
      if (got.get() != 7 + i) ++wrong;
      task("four").inout(local).launch([&] { ++local; });
      taskwait();
      if (local != 8 + i) ++wrong;
      ++x;
    });
  });
  EXPECT_EQ(x, 20);
  EXPECT_EQ(wrong, 0);
}

TEST_P(IterateTest, a_task_has_a_loop_of_its_own) {
  std::array<int, 3> sums{};
  iterate(4, [&](std::int64_t) {
    for (int& sum : sums) {
      task("outer").inout(sum).launch([&sum] {
        iterate(5, {.period = 2}, [&](const std::int64_t offset) {
          task("inner").inout(sum).launch([&sum, offset](const int i) {
            sum += i % 2 == offset ? i : 1000;
          });
        });
      });
    }
  });
  for (const int sum : sums) EXPECT_EQ(sum, 40);
}

TEST_P(IterateTest, an_access_that_is_released_early_lets_the_next_iteration_go_on) {
  int value = 0, other = 0;
  std::array<Promise<void>, 5> read;
  iterate(5, [&](std::int64_t) {
    task("produce").inout(value).inout(other).launch([&](const int i) {
      value = i;
      release(value);
      if (i < 4) read[i].future().get();  // the reader follows `value` alone
    });
    task("read").in(value).launch([&](const int i) {
      EXPECT_EQ(value, i);
      read[i].set();
    });
    task("count").inout(other).launch([&] { ++other; });
  });
  EXPECT_EQ(other, 5);
}

TEST_P(IterateTest, an_early_release_of_one_access_does_not_end_a_range) {
  std::array<int, 4> v{};
  int w = 0, wrong = 0;
  iterate(20, [&](std::int64_t) {
    task("first").inout(v[1]).launch([&] { ++v[1]; });  // before any range is known
    task("range").inout(range(v.data(), 4)).inout(w).launch([&] {
      release(w);
      const int before = v[1];
      for (int yields = 0; yields < 3; ++yields) yield();
      if (v[1] != before) ++wrong;
    });
    task("other").inout(w).launch([] {});
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(v[1], 20);
}

TEST_P(IterateTest, an_event_ends_an_access_after_the_task) {
  int buffer = 0, wrong = 0;
  std::array<Promise<void>, 10> arrived;
  std::thread thread;
  iterate(10, [&](std::int64_t) {
    task("receive").out(buffer).launch([&](const int i) {
      release_after(arrived[i].future(), buffer);
      task("message").launch([&, i] {
        yield();
        buffer = i + 1;
        arrived[i].set();
      });
    });
    task("read").in(buffer).launch([&](const int i) {
      if (buffer != i + 1) ++wrong;
    });
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(IterateTest, an_event_of_a_thread_ends_the_task_or_one_access) {
  for (const bool whole : {true, false}) {
    int buffer = 0, wrong = 0;
    std::array<Promise<void>, 10> arrived;
    std::atomic<int> begun = 0;
    std::thread thread([&] {
      for (int i = 0; i < 10; ++i) {
        if (!comes_true([&] { return begun > i; })) return;
        buffer = i + 1;
        arrived[i].set();
      }
    });
    iterate(10, [&](std::int64_t) {
      task("receive").out(buffer).launch([&](const int i) {
        if (whole) {
          release_after(arrived[i].future());
        } else {
          release_after(arrived[i].future(), buffer);
        }
        begun = i + 1;
      });
      task("read").in(buffer).launch([&](const int i) {
        if (buffer != i + 1) ++wrong;
      });
    });
    thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST_P(IterateTest, a_mutexinoutset_may_be_released_early_or_held) {
  int inside = 0, wrong = 0, object = 0;
  iterate(20, [&](std::int64_t) {
    task("early").mutexinoutset(object).launch([&] {
      if (inside++ != 0) ++wrong;
      yield();
      --inside;
      release(object);
      yield();
    });
    task("held").mutexinoutset(object).launch([&] {
      if (inside++ != 0) ++wrong;
      const Promise<void> event;
      release_after(event.future(), object);
      task("ends").launch([&inside, event] {
        yield();
        --inside;
        event.set();
      });
    });
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(IterateTest, captured_values_may_be_large_and_are_kept) {
  std::array<unsigned char, 100'000> bytes;
  bytes.fill(3);
  std::array<int, 40> cells{};
  iterate(3, [&](std::int64_t) {
    TaskBuilder builder = task("large");
    for (int& cell : cells) (void)builder.inout(cell);
    builder.launch([&cells, bytes, calls = 0]() mutable {
      ++calls;
      for (int& cell : cells) cell += calls * bytes[99'999];
    });
  });
  for (const int cell : cells) EXPECT_EQ(cell, 3 + 6 + 9);
}

TEST_P(IterateTest, places_priorities_and_ties_are_kept) {
  std::atomic<int> wrong = 0;
  const Place first = place(0);
  iterate(10, [&](std::int64_t) {
    task("placed").at(first).priority(3).launch([&] { yield(); });
    task("tied").tied().launch([&] {
      const std::thread::id before = std::this_thread::get_id();
      yield();
      if (std::this_thread::get_id() != before) ++wrong;
    });
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(IterateOrderTest, the_instance_of_the_highest_priority_goes_first) {
  Log log;
  iterate(2, [&](std::int64_t) {
    for (const int level : {0, 3, -2, 7}) {
      task("level").priority(level).decides().launch([&log, level] { log.add(level); });
    }
  });
  EXPECT_EQ(log.entries(), (std::vector<int>{7, 3, 0, -2, 7, 3, 0, -2}));
}

TEST_P(IterateTest, two_tasks_and_two_threads_have_loops_at_once) {
  std::array<int, 4> sums{};
  const auto loop = [](int& sum) {
    iterate(50, [&](std::int64_t) {
      task("add").inout(sum).launch([&sum](const int i) { sum += i; });
      task("yields").launch([] { yield(); });
    });
  };
  std::array<Promise<void>, 2> over;  // main may be the only worker, and must not block
  std::thread first([&] {
    loop(sums[0]);
    over[0].set();
  });
  std::thread second([&] {
    loop(sums[1]);
    over[1].set();
  });
  finish([&] {
    task("third").launch([&] { loop(sums[2]); });
    task("fourth").launch([&] { loop(sums[3]); });
  });
  for (Promise<void>& each : over) each.future().get();
  first.join();
  second.join();
  for (const int sum : sums) EXPECT_EQ(sum, 49 * 25);
}

TEST_P(IterateTest, a_body_may_wait_while_it_creates_tasks) {
  int value = 0;
  iterate(3, [&](std::int64_t) {
    task("one").inout(value).launch([&] { ++value; });
    yield();
    EXPECT_EQ(value, 0) << "nothing runs before the body has ended";
    task("two").inout(value).launch([&] { value *= 3; });
  });
  EXPECT_EQ(value, 39);
}

}  // namespace
}  // namespace imbrex::test
