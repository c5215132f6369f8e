// SPDX-License-Identifier: BSD-3-Clause
// Destructors that wait: of results, closures, promised values and exceptions, wherever they die.
//
// Methodology: a Closing waits when it is destroyed, as one would that closes a file by a blocking
// call: for a task of its own, and for an event that another one fires, so that it is suspended. It
// dies at each of the places where the runtime gives up what belongs to the program; afterwards all
// must have been closed, and no task be left.
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/on_runtime.hpp"
#include "imbrex/detail/plug_ins.hpp"

namespace imbrex::test {
namespace {

std::atomic<int> closed = 0;

class Closing {
 public:
  Closing() : open_(true) {}
  Closing(Closing&& other) noexcept : open_(std::exchange(other.open_, false)) {}
  Closing& operator=(Closing&&) = delete;
  ~Closing() {
    if (!open_) return;
    Promise<void> done;
    task("closes").launch([&done] {
      yield();
      done.set();
    });
    done.future().get();
    ++closed;
  }

 private:
  bool open_;
};

class DestructorTest : public OnRuntime {
 protected:
  static constexpr int rounds = 20;

  void SetUp() override {
    closed = 0;
    OnRuntime::SetUp();
  }
  // All that has died is destroyed before the end of the program.
  static void expect_closed(const int count) {
    detail::drain();
    EXPECT_EQ(closed.load(), count);
  }
};
INSTANTIATE_TEST_SUITE_P(All, DestructorTest,
                         testing::ValuesIn(setups({1, 2, 8}, {"", "steal", "fifo", "priority", "ga",
                                                              "seeded:2026"})),
                         name_of);

TEST_P(DestructorTest, a_closure_is_destroyed_in_its_task) {
  finish([] {
    for (int i = 0; i < rounds; ++i) {
      task("closure").launch([closing = std::make_shared<Closing>()] {});
    }
  });
  EXPECT_EQ(closed.load(), rounds);
}

TEST_P(DestructorTest, a_result_that_nobody_asked_for_is_destroyed_in_its_task) {
  finish([] {
    for (int i = 0; i < rounds; ++i) {
      task("launched").launch([] { return Closing(); });
      (void)task("dropped at once").spawn([] { return Closing(); });
      (void)task("suspended").spawn([] {
        yield();
        return Closing();
      });
    }
  });
  expect_closed(3 * rounds);
}

TEST_P(DestructorTest, a_result_is_destroyed_by_who_drops_the_last_future) {
  for (int i = 0; i < rounds; ++i) {
    auto future = task("result").spawn([] { return Closing(); });
    future.wait();
    future = {};
    // The worker that ran the task may hold it for a moment more, and is then the last to drop it.
    expect_closed(i + 1);
  }
  finish([] {
    for (int i = 0; i < rounds; ++i) {
      task("owner").launch([future = task("result").spawn([] { return Closing(); })] {
        future.wait();
      });
    }
  });
  expect_closed(2 * rounds);
}

TEST_P(DestructorTest, results_of_tasks_with_accesses_die_with_the_table_or_with_their_successors) {
  std::vector<int> cells(4);
  finish([&] {
    for (int i = 0; i < rounds; ++i) {
      (void)task("writer").inout(cells[0]).spawn([] { return Closing(); });
      (void)task("reader").in(cells[0], cells[1]).spawn([] { return Closing(); });
      (void)task("other").inout(cells[i % 4]).spawn([] {
        yield();
        return Closing();
      });
      task("parent").in(cells[2]).launch([] {
        int own = 0;
        for (int k = 0; k < 3; ++k) (void)task("inner").inout(own).spawn([] { return Closing(); });
        taskwait();
        for (int k = 0; k < 3; ++k) (void)task("inner").spawn([] { return Closing(); });
      });
    }
  });
  expect_closed(9 * rounds);
}

TEST_P(DestructorTest, the_table_of_a_parent_that_does_not_wait_dies_with_it) {
  finish([] {
    for (int i = 0; i < rounds; ++i) {
      task("parent").launch([] {
        auto own = std::make_shared<int>(0);
        for (int k = 0; k < 3; ++k) {
          (void)task("inner").inout(*own).spawn([own] { return Closing(); });
        }
      });
    }
  });
  expect_closed(3 * rounds);
}

TEST_P(DestructorTest, a_result_dies_where_the_life_of_its_task_ends_with_its_descendants) {
  finish([] {
    for (int i = 0; i < rounds; ++i) {
      (void)task("parent").spawn([] {
        task("child").launch([] { yield(); });
        return Closing();
      });
    }
  });
  expect_closed(rounds);
}

TEST_P(DestructorTest, a_held_task_that_dies_as_its_event_fires) {
  std::vector<Promise<void>> events(rounds);
  Promise<void> failing;
  std::atomic<int> ran = 0;
  const auto run = [&] {
    for (Promise<void>& event : events) {
      (void)task("held").spawn([&] {
        release_after(event.future());
        ++ran;
        return Closing();
      });
      (void)task("held and failed").spawn([&, future = failing.future()] {
        release_after(future);
        ++ran;
        return Closing();
      });
    }
    while (ran.load() != 2 * rounds) yield();
    std::thread thread([&] {  // that imbrex does not know
      for (Promise<void>& event : events) event.set();
    });
    thread.join();
    failing.set_exception(std::make_exception_ptr(std::runtime_error("late")));
  };
  EXPECT_THROW(finish(run), std::runtime_error);  // the futures of those that fail are dropped
  expect_closed(2 * rounds);
}

TEST_P(DestructorTest, a_promised_value_dies_with_the_last_future_or_as_a_task_begins) {
  for (int i = 0; i < rounds; ++i) {
    Promise<Closing> promise;
    promise.set();
    { const auto all = when_all(promise.future(), when_any(promise.future())); }
    auto builder = task("after").in(promise.future(), when_all(promise.future()));
    promise = Promise<Closing>();
    auto after = builder.spawn([] {});
    builder = task("nothing");
    after.get();
  }
  expect_closed(rounds);
}

TEST_P(DestructorTest, the_event_that_holds_a_task_dies_with_the_task) {
  for (int i = 0; i < rounds; ++i) {
    Promise<Closing> promise;
    (void)task("held").spawn([future = promise.future()] {
      release_after(future);
    });
    let_others_run();
    promise.set();
  }
  expect_closed(rounds);
}

TEST_P(DestructorTest, a_future_dropped_in_a_callback_leaves_its_value_to_a_task) {
  for (int i = 0; i < rounds; ++i) {
    auto future = task("result").spawn([] { return Closing(); });
    future.wait();
    Promise<Closing> promise;
    auto promised = promise.future();
    promise.set();
    promise = Promise<Closing>();
    detail::enter_callback("a function");
    future = {};
    promised = {};
    detail::leave_callback();
  }
  expect_closed(2 * rounds);
}

TEST_P(DestructorTest, foreign_threads_block_in_destructors) {
  std::vector<Future<Closing>> results(2 * rounds);
  for (auto& result : results) result = task("result").spawn([] { return Closing(); });
  for (const auto& result : results) result.wait();
  std::atomic<int> ended = 0;
  const auto drop = [&](const int first) {
    for (int i = first; i < 2 * rounds; i += 2) {
      results[i] = {};
      Promise<Closing> promise;
      promise.set();
    }
    ++ended;
  };
  std::thread one(drop, 0);
  std::thread two(drop, 1);
  while (ended.load() != 2) yield();
  one.join();
  two.join();
  expect_closed(4 * rounds);
}

struct Thrown : std::runtime_error {
  explicit Thrown(std::shared_ptr<Closing> its)
      : runtime_error("thrown"), closing(std::move(its)) {}
  std::shared_ptr<Closing> closing;
};

TEST_P(DestructorTest, the_destructor_of_an_exception_may_wait_too) {
  for (int i = 0; i < rounds; ++i) {
    EXPECT_THROW(finish([] {
                   task("throws").launch([] { throw Thrown(std::make_shared<Closing>()); });
                   (void)task("throws").spawn([] { throw Thrown(std::make_shared<Closing>()); });
                 }),
                 Thrown);
  }
  expect_closed(2 * rounds);
}

TEST_P(DestructorTest, completions_that_hold_each_other_are_dropped_by_a_loop) {
  const int tasks = scaled(30'000);
  Promise<Closing> first;
  {
    Future<void> before = when_all(first.future());
    finish([&] {
      for (int i = 0; i < tasks; ++i) {
        before = task("held").spawn([before] { release_after(before); });
      }
      let_others_run();
      first.set();
    });
    before.get();
  }
  first = Promise<Closing>();
  expect_closed(1);
}

// ---- what looks like a stall -----------------------------------------------------------------

class SlowDestructorTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, SlowDestructorTest, testing::ValuesIn(setups({1, 2}, {""})), name_of);

struct Slow {
  explicit Slow(bool& its_flag) : gone(&its_flag) {}
  Slow(Slow&& other) noexcept : gone(std::exchange(other.gone, nullptr)) {}
  Slow& operator=(Slow&&) = delete;
  ~Slow() {
    if (gone == nullptr) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    *gone = true;
  }
  bool* gone;
};

TEST_P(SlowDestructorTest, tasks_made_ready_by_an_event_do_not_wait_for_dying_results) {
  Promise<void> event;
  bool gone = false;
  std::thread thread;
  finish([&] {
    (void)task("held").spawn([&] {
      release_after(event.future());
      return Slow(gone);
    });
    task("waits").launch([&] { event.future().get(); });
    let_others_run();
    thread = std::thread([&] { event.set(); });
  });
  thread.join();
  detail::drain();
  EXPECT_TRUE(gone);
}

TEST_P(SlowDestructorTest, a_destructor_in_a_foreign_thread_is_no_stall) {
  bool gone = false;
  auto result = task("result").spawn([&] { return Slow(gone); });
  Promise<void> dropped;
  result.wait();
  std::thread thread([&] {
    task("makes it known").spawn([] {}).get();
    result = {};
    dropped.set();
  });
  task("waits").spawn([future = dropped.future()] { future.get(); }).get();
  EXPECT_TRUE(gone);
  thread.join();
}

}  // namespace
}  // namespace imbrex::test
