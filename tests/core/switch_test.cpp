// SPDX-License-Identifier: BSD-3-Clause
// What happens when a task gives way: yield, tied tasks, early and late release of accesses, and
// the state of the processor and of C++ exceptions that must go with the task.
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>

#include "core/on_runtime.hpp"
#include "imbrex/detail/plug_ins.hpp"

namespace imbrex::test {
namespace {

class SwitchTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, SwitchTest, testing::ValuesIn(every_setup()), name_of);

class OneWorkerTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(OneWorker, OneWorkerTest, testing::ValuesIn(one_worker()), name_of);

// Asks the kernel, each time: pthread_self() and thread-local addresses may be cached by the
// compiler across a wait.
[[gnu::noinline]] int thread_number() {
  asm volatile("");
  return static_cast<int>(gettid());
}

TEST_P(OneWorkerTest, a_yielding_task_goes_behind_everything_ready_whatever_its_priority) {
  std::atomic<int> ran = 0;
  auto yielder = task("yielder").priority(1000).spawn([&ran] {
    for (int round = 1; round <= 5; ++round) {
      for (int i = 0; i < 3; ++i) {
        task("ready").priority(-5).launch([&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
      }
      yield();
      EXPECT_EQ(ran.load(), 3 * round);
    }
  });
  yielder.get();
}

TEST_P(OneWorkerTest, the_root_task_yields_to_everything_ready) {
  std::atomic<int> ran = 0;
  for (int i = 0; i < 7; ++i) task("ready").priority(-1).launch([&ran] { ++ran; });
  yield();
  EXPECT_EQ(ran.load(), 7);
}

TEST_P(OneWorkerTest, two_yielding_tasks_of_different_priority_take_turns) {
  Log log;
  finish([&] {
    for (const int level : {1, 100}) {
      task("turn").priority(level).launch([&log, level] {
        for (int i = 0; i < 6; ++i) {
          log.add(level);
          yield();
        }
      });
    }
  });
  const std::vector<int> turns = log.entries();
  ASSERT_EQ(turns.size(), 12u);
  for (std::size_t i = 2; i < turns.size(); ++i) EXPECT_NE(turns[i], turns[i - 1]) << "turn " << i;
}

TEST_P(SwitchTest, yield_returns_when_nothing_else_is_ready) {
  for (int i = 0; i < 100; ++i) yield();
  task("alone").spawn([] { yield(); }).get();
}

TEST_P(OneWorkerTest, yield_calls_the_pollers_although_nothing_is_idle) {
  std::atomic<int> calls = 0;
  const std::atomic<int> outstanding = 1;
  detail::Poller poller{[](void* context) noexcept {
                          static_cast<std::atomic<int>*>(context)->fetch_add(1);
                          return 0;
                        },
                        &calls, &outstanding};
  detail::add_poller(poller);
  task("yields").spawn([&] {
    for (int i = 0; i < 10; ++i) {
      const int before = calls.load();
      yield();
      EXPECT_GT(calls.load(), before);
    }
  }).get();
  detail::remove_poller(poller);
  const int after = calls.load();
  for (int i = 0; i < 10; ++i) yield();
  EXPECT_EQ(calls.load(), after) << "a removed poller is called";
}

TEST_P(SwitchTest, a_poller_with_operations_outstanding_wakes_a_task_and_is_no_stall) {
  struct Delayed {
    Promise<void> event;
    std::atomic<int> rounds = 0;
    std::atomic<int> outstanding = 1;
  } delayed;
  detail::Poller poller{[](void* context) noexcept {
                          Delayed& self = *static_cast<Delayed*>(context);
                          if (self.rounds.fetch_add(1) != 200) return 0;
                          self.outstanding.store(0);
                          self.event.set();
                          return 1;
                        },
                        &delayed, &delayed.outstanding};
  detail::add_poller(poller);
  auto waiter = task("waiter").spawn([&] { delayed.event.future().get(); });
  waiter.get();
  detail::remove_poller(poller);
  EXPECT_GT(delayed.rounds.load(), 200);
}

TEST_P(SwitchTest, a_tied_task_resumes_on_the_thread_that_it_left) {
  const int tasks = 40;
  std::deque<Promise<void>> gates(tasks);
  std::atomic<int> moved = 0;
  finish([&] {
    for (int i = 0; i < tasks; ++i) {
      task("tied").tied().launch([&, i] {
        const int home = thread_number();
        for (int round = 0; round < 5; ++round) {
          yield();
          if (thread_number() != home) ++moved;
        }
        gates[i].future().get();
        if (thread_number() != home) ++moved;
        task("child").spawn([] { yield(); }).get();
        if (thread_number() != home) ++moved;
        finish([] { task("child").launch([] { yield(); }); });
        if (thread_number() != home) ++moved;
      });
    }
    task("opener").launch([&] {
      for (Promise<void>& gate : gates) {
        yield();
        gate.set();
      }
    });
  });
  EXPECT_EQ(moved.load(), 0);
}

TEST_P(SwitchTest, the_root_task_stays_on_its_thread) {
  const int home = thread_number();
  for (int i = 0; i < 50; ++i) {
    task("work").spawn([] { yield(); }).get();
    ASSERT_EQ(thread_number(), home);
    yield();
    ASSERT_EQ(thread_number(), home);
  }
}

TEST_P(SwitchTest, a_released_access_lets_its_dependents_run_before_the_task_ends) {
  Promise<void> gate;
  int x = 0;
  int y = 0;
  std::atomic<bool> ended = false;
  std::atomic<bool> y_written = false;
  auto first = task("first").out(x, y).spawn([&] {
    x = 5;
    release(x);
    gate.future().get();  // fired only by a task that depends on x
    y = 6;
    y_written = true;
    ended = true;
  });
  auto second = task("second").inout(x).spawn([&] {
    EXPECT_EQ(x, 5);
    EXPECT_FALSE(ended.load());
    ++x;
    gate.set();
  });
  auto third = task("third").in(x, y).spawn([&] {
    EXPECT_TRUE(y_written.load());
    return x * 10 + y;
  });
  EXPECT_EQ(third.get(), 66);
  first.get();
  second.get();
}

TEST_P(SwitchTest, a_released_mutex_access_lets_its_neighbours_run) {
  Promise<void> gate;
  int x = 0;
  finish([&] {
    task("first").mutexinoutset(x).launch([&] {
      ++x;
      release(x);
      gate.future().get();
    });
    yield();
    task("second").mutexinoutset(x).launch([&] {
      ++x;
      release(x);
      if (!gate.future().ready()) gate.set();
    });
    task("reader").in(x).launch([&] { EXPECT_EQ(x, 2); });
  });
}

TEST_P(SwitchTest, releasing_what_was_not_declared_throws) {
  int x = 0;
  int y = 0;
  auto wrong = task("wrong").in(x).spawn([&] { release(y); });
  EXPECT_THROW(wrong.get(), Error);
  auto nested = task("outer").inout(x).spawn([&] {
    task("inner").in(y).spawn([&] { release(x); }).get();  // its parent's is not its own
  });
  EXPECT_THROW(nested.get(), Error);
}

TEST_P(SwitchTest, a_task_completes_only_after_the_events_of_release_after) {
  Promise<void> early;
  Promise<void> first;
  Promise<void> second;
  early.set();
  int x = 0;
  std::atomic<bool> reader_ran = false;
  std::atomic<bool> body_ended = false;
  auto writer = task("writer").out(x).spawn([&] {
    release_after(early.future());
    release_after(first.future());
    release_after(second.future());
    body_ended = true;
    return 3;
  });
  auto reader = task("reader").in(x).spawn([&] { reader_ran = true; });
  auto after = task("after").in(writer).spawn([&] { return reader_ran.load() || true; });
  while (!body_ended.load()) yield();
  let_others_run();
  EXPECT_FALSE(reader_ran.load());
  EXPECT_FALSE(writer.ready());
  first.set();
  let_others_run();
  EXPECT_FALSE(reader_ran.load());
  EXPECT_FALSE(after.ready());
  second.set();
  EXPECT_EQ(writer.get(), 3);
  reader.get();
  EXPECT_TRUE(after.get());
}

TEST_P(SwitchTest, finish_waits_for_the_events_of_release_after) {
  Promise<void> gate;
  std::atomic<bool> fired = false;
  finish([&] {
    task("bound").launch([&] { release_after(gate.future()); });
    task("firer").launch([&] {
      for (int i = 0; i < 10; ++i) yield();
      fired = true;
      gate.set();
    });
  });
  EXPECT_TRUE(fired.load());
}

TEST_P(SwitchTest, suspending_in_a_catch_block_keeps_the_exception_of_the_task) {
  std::vector<Future<std::string>> texts;
  for (int i = 0; i < 16; ++i) {
    texts.push_back(task("catching").spawn([i]() -> std::string {
      try {
        try {
          throw std::runtime_error("exception " + std::to_string(i));
        } catch (const std::exception&) {
          for (int round = 0; round < 4; ++round) yield();  // others throw and catch meanwhile
          throw;
        }
      } catch (const std::exception& error) {
        yield();
        return error.what();
      }
    }));
  }
  for (int i = 0; i < 16; ++i) EXPECT_EQ(texts[i].get(), "exception " + std::to_string(i));
}

// Counts, while it is destroyed by an exception, how many exceptions its task has in flight.
struct Unwinding {
  int* seen;
  ~Unwinding() {
    yield();
    *seen = std::uncaught_exceptions();
  }
};

TEST_P(SwitchTest, suspending_while_an_exception_unwinds_keeps_the_number_in_flight) {
  std::deque<int> seen(8, -1);
  std::deque<int> others(8, -1);
  finish([&] {
    for (int i = 0; i < 8; ++i) {
      task("unwinding").launch([&seen, i] {
        try {
          const Unwinding unwinding{&seen[i]};
          throw std::runtime_error("passing");
        } catch (const std::exception&) {
        }
      });
      task("calm").launch([&others, i] {
        yield();
        others[i] = std::uncaught_exceptions();
      });
    }
  });
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(seen[i], 1);
    EXPECT_EQ(others[i], 0);
  }
}

[[gnu::noinline]] int rounding() {
  asm volatile("" ::: "memory");
  return fegetround();
}

TEST_P(SwitchTest, the_rounding_mode_goes_with_the_task) {
  std::atomic<int> wrong = 0;
  finish([&] {
    for (int i = 0; i < 16; ++i) {
      const int mode = i % 2 == 0 ? FE_UPWARD : FE_DOWNWARD;
      task("rounding").launch([&wrong, mode] {
        if (rounding() != FE_TONEAREST) ++wrong;
        std::fesetround(mode);
        for (int round = 0; round < 4; ++round) {
          yield();
          if (rounding() != mode) ++wrong;
        }
        std::fesetround(FE_TONEAREST);
      });
    }
  });
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(rounding(), FE_TONEAREST);
}

TEST_P(SwitchTest, a_task_keeps_its_stack_across_many_suspensions) {
  const int tasks = scaled(200);
  std::atomic<int> wrong = 0;
  finish([&] {
    for (int i = 0; i < tasks; ++i) {
      task("stack").launch([&wrong, i] {
        volatile int cells[500];
        for (int k = 0; k < 500; ++k) cells[k] = i * 500 + k;
        for (int round = 0; round < 3; ++round) {
          yield();
          for (int k = 0; k < 500; ++k) {
            if (cells[k] != i * 500 + k) ++wrong;
          }
        }
      });
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace imbrex::test
