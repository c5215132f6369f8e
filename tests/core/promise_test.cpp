// SPDX-License-Identifier: BSD-3-Clause
// Promises of something that happens once, and threads of the program's own: they set, wait, spawn,
// and have their own root scope.
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class PromiseTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, PromiseTest, testing::ValuesIn(every_setup()), name_of);

TEST_P(PromiseTest, a_promise_set_before_the_wait_does_not_suspend) {
  Promise<void> event;
  EXPECT_FALSE(event.future().ready());
  event.set();
  EXPECT_TRUE(event.future().ready());
  const std::uint64_t before = statistics().suspensions;
  event.future().get();
  EXPECT_EQ(statistics().suspensions, before);
}

TEST_P(PromiseTest, a_promise_set_after_the_wait_wakes_every_waiter_once) {
  const int waiters = scaled(1000);
  Promise<void> event;
  std::atomic<int> woken = 0;
  finish([&] {
    for (int i = 0; i < waiters; ++i) {
      task("waiter").launch([&] {
        event.future().get();
        EXPECT_TRUE(event.future().ready());
        ++woken;
      });
    }
    let_others_run();
    EXPECT_EQ(woken.load(), 0);
    event.set();
  });
  EXPECT_EQ(woken.load(), waiters);
}

TEST_P(PromiseTest, a_second_set_throws) {
  Promise<void> event;
  event.set();
  EXPECT_THROW(event.set(), Error);
  auto again = task("again").spawn([&] { event.set(); });
  EXPECT_THROW(again.get(), Error);
  event.future().get();
}

TEST_P(PromiseTest, a_thread_of_the_program_wakes_tasks) {
  std::deque<Promise<void>> events(scaled(100));
  std::atomic<int> woken = 0;
  std::thread thread;
  finish([&] {
    for (Promise<void>& event : events) {
      task("waiter").launch([&] {
        event.future().get();
        ++woken;
      });
    }
    thread = std::thread([&] {
      for (Promise<void>& event : events) event.set();
    });
  });
  thread.join();
  EXPECT_EQ(woken.load(), static_cast<int>(events.size()));
}

TEST_P(PromiseTest, a_thread_of_the_program_blocks_until_a_task_sets) {
  Promise<void> request;
  Promise<void> answered;
  std::atomic<bool> order = false;
  std::thread thread([&] {
    request.set();
    answered.future().get();
    order = true;
  });
  request.future().get();
  EXPECT_FALSE(order.load());
  task("answer").spawn([&] { answered.set(); }).get();
  thread.join();
  EXPECT_TRUE(order.load());
}

TEST_P(PromiseTest, a_promise_may_be_destroyed_as_soon_as_its_waiter_goes_on) {
  const int rounds = scaled(2000);
  std::atomic<int> done = 0;
  finish([&] {
    for (int i = 0; i < rounds; ++i) {
      task("owner").launch([&done] {
        Promise<void> on_my_stack;
        task("firer").launch([&on_my_stack] { on_my_stack.set(); });
        on_my_stack.future().get();
        ++done;
      });
    }
  });
  EXPECT_EQ(done.load(), rounds);
}

TEST_P(PromiseTest, a_promise_on_the_heap_may_be_deleted_while_a_thread_is_still_in_set) {
  const int rounds = scaled(300);
  std::atomic<Promise<void>*> next = nullptr;
  std::atomic<bool> over = false;
  std::thread thread([&] {
    while (!over.load()) {
      if (Promise<void>* const event = next.exchange(nullptr)) event->set();
      std::this_thread::yield();
    }
  });
  task("owner")
      .spawn([&] {
        for (int i = 0; i < rounds; ++i) {
          auto event = std::make_unique<Promise<void>>();
          next = event.get();
          event->future().get();
        }
      })
      .get();
  over = true;
  thread.join();
}

TEST_P(PromiseTest, threads_of_the_program_spawn_and_wait) {
  std::deque<std::thread> threads;
  std::atomic<int> total = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&total] {
      int x = 0;
      finish([&] {
        for (int k = 0; k < 100; ++k) task("link").inout(x).launch([&x] { ++x; });
      });
      EXPECT_EQ(x, 100);
      auto sum = task("sum").in(x).spawn([&x] { return x; });
      total += sum.get();
      task("child").launch([&total] {
        yield();
        ++total;
      });
      taskwait();
    });
  }
  // The root task of the runtime is one of its workers: it waits in a task, not in join().
  while (total.load() < 303) yield();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total.load(), 303);
}

TEST_P(PromiseTest, each_thread_of_the_program_has_its_own_table) {
  int x = 0;
  Promise<void> gate;
  std::atomic<bool> joined = false;
  auto mine = task("mine").inout(x).spawn([&] { gate.future().get(); });
  std::thread thread([&] {
    // This task has the address of `mine`, but is no sibling: it must not wait for `mine`.
    task("theirs").inout(x).spawn([&] { gate.set(); }).get();
    joined = true;
  });
  mine.get();
  while (!joined.load()) yield();
  thread.join();
}

TEST_P(PromiseTest, the_tasks_of_a_thread_that_has_ended_still_run) {
  std::atomic<int> ran = 0;
  Promise<void> gate;
  std::thread([&] {
    int x = 0;  // its address only
    for (int i = 0; i < 50; ++i) {
      task("orphan").inout(x).launch([&] {
        gate.future().get();
        ++ran;
      });
    }
  }).join();
  gate.set();
  while (ran.load() < 50) yield();
}

// Calls for which imbrex need not know the thread; it must not know the thread after them.
void act_as_outsider(Promise<void>& event, Promise<int> promise, Future<int> dropped) {
  const auto is_unknown = [] { return !detail::in_task(); };
  EXPECT_TRUE(is_unknown());
  event.set();
  EXPECT_TRUE(is_unknown()) << "after Promise<void>::set()";
  promise.set(7);
  EXPECT_TRUE(is_unknown()) << "after Promise::set()";
  dropped = {};
  EXPECT_TRUE(is_unknown()) << "after the last future";
  trigger("by an outsider");
  EXPECT_TRUE(is_unknown()) << "after trigger()";
}

// A known thread has a task of its own, which sleeps where MPI's own calls would poll.
TEST_P(PromiseTest, a_thread_that_only_sets_stays_unknown) {
  for (int round = 0; round < scaled(100); ++round) {
    Promise<void> event;
    Promise<void> after_both;
    Promise<int> promise("of the thread");
    auto dropped = task("dropped").spawn([] { return 1; });
    std::thread thread;
    finish([&] {
      auto triggered = named("by an outsider");
      task("held").launch([&] {
        release_after(event.future());
        task("child").launch([] {});
      });
      auto both = when_all(promise.future(), task("waits").spawn([&] { event.future().get(); }));
      task("after both").in(both).launch([&] { after_both.set(); });
      task("after the name").in(triggered).launch([] {});
      thread = std::thread(act_as_outsider, std::ref(event), promise, std::move(dropped));
      after_both.future().get();
    });
    EXPECT_EQ(promise.future().get(), 7);
    thread.join();
  }
}

// While the only worker is kept, a foreign thread that waits must not depend on it.
TEST_P(PromiseTest, an_outsider_lets_a_foreign_thread_go_on_while_the_worker_is_kept) {
  for (int round = 0; round < scaled(50); ++round) {
    Promise<int> promise("from outside");
    std::thread waits([future = promise.future()] { EXPECT_EQ(future.get(), 3); });
    std::thread sets([promise] { promise.set(3); });
    waits.join();
    sets.join();
  }
}

TEST(WithoutRuntimeTest, a_promise_of_nothing_can_be_set_and_asked) {
  Promise<void> event;
  event.set();
  EXPECT_TRUE(event.future().ready());
  event.future().get();
  EXPECT_THROW(event.set(), Error);
}

TEST(WithoutRuntimeTest, a_promise_can_be_set_and_got) {
  Promise<int> promise;
  promise.set(4);
  EXPECT_EQ(promise.future().get(), 4);
  const Future<int> broken = Promise<int>().future();
  EXPECT_THROW((void)broken.get(), BrokenPromise);
}

TEST(WithoutRuntimeTest, one_runtime_follows_another) {
  for (int i = 0; i < 20; ++i) {
    const Runtime runtime(config(1 + i % 4, ""));
    EXPECT_EQ(worker_count(), 1 + i % 4);
    EXPECT_EQ(task("in turn").spawn([i] { return i; }).get(), i);
  }
}

TEST(WithoutRuntimeTest, a_second_runtime_at_a_time_is_refused) {
  const Runtime runtime(config(2, ""));
  EXPECT_THROW(Runtime(config(2, "")), Error);
  EXPECT_EQ(task("goes on").spawn([] { return 1; }).get(), 1);
}

TEST(WithoutRuntimeTest, a_malformed_configuration_is_refused_with_what_is_valid) {
  EXPECT_THROW(Runtime(config(-3, "")), Error);
  EXPECT_THROW(Runtime(config(1, "seeded:x")), Error);
  try {
    const Runtime runtime(config(1, "nonsense"));
    FAIL() << "not refused";
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* word : {"nonsense", "steal", "fifo", "priority", "seeded"}) {
      EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\" in: " << text;
    }
  }
  const Runtime runtime(config(2, ""));  // a refused one leaves nothing behind
  EXPECT_EQ(task("works").spawn([] { return 1; }).get(), 1);
}

TEST(WithoutRuntimeTest, sixty_four_workers_on_few_cores_do_their_work) {
  for (const char* policy : {"", "steal", "fifo", "priority", "seeded:5"}) {
    SCOPED_TRACE(policy);
    const Runtime runtime(config(64, policy));
    EXPECT_EQ(worker_count(), 64);
    std::atomic<int> done = 0;
    int x = 0;
    finish([&] {
      for (int i = 0; i < scaled(5000); ++i) {
        task("free").launch([&done] {
          yield();
          ++done;
        });
        task("link").inout(x).launch([&x] { ++x; });
      }
    });
    EXPECT_EQ(done.load(), scaled(5000));
    EXPECT_EQ(x, scaled(5000));
  }
}

}  // namespace
}  // namespace imbrex::test
