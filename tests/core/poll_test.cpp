// SPDX-License-Identifier: BSD-3-Clause
// Who calls the pollers, and how often. The pollers here cost what the test says and complete
// nothing unless it says so.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "core/on_runtime.hpp"
#include "imbrex/detail/plug_ins.hpp"

namespace imbrex::test {
namespace {

using Clock = std::chrono::steady_clock;

void spin_for(std::chrono::nanoseconds duration) {
  const Clock::time_point end = Clock::now() + duration;
  while (Clock::now() < end) {
  }
}

// Returns how often the kernel has let the calling thread sleep. The loss of the processor to
// another thread, or its offer, is no sleep.
long sleeps_of_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// A poller with something outstanding; on the runtime while it lives.
class Polled {
 public:
  explicit Polled(std::chrono::nanoseconds cost, bool by_workers = true) : cost_(cost) {
    poller_.by_workers = by_workers;
    poller_.noticed = &noticed;
    poller_.wake = [](void* self) noexcept { ++static_cast<Polled*>(self)->rings; };
    poller_.seek = [](void* self) noexcept { return static_cast<Polled*>(self)->seek(); };
    detail::add_poller(poller_);
  }
  ~Polled() { detail::remove_poller(poller_); }
  Polled(const Polled&) = delete;
  Polled& operator=(const Polled&) = delete;

  std::atomic<int> outstanding{1};
  std::atomic<int> calls{0};
  std::atomic<int> rings{0};
  std::atomic<bool> noticed{false};
  std::atomic<Promise<void>*> to_fire{nullptr};

  // Counts for workers without a task: polls; changes of the thread; the most polls in a row of one
  // thread with one look for tasks between two of them, and no sleep.
  std::atomic<int> idle_calls{0};
  std::atomic<int> hand_overs{0};
  std::atomic<int> longest_row{0};
  // Sleeps of a thread between two of its polls.
  std::atomic<int> naps{0};

 private:
  int poll() {
    ++calls;
    noticed.store(false);
    if (!detail::in_task()) note_idle_poll();
    spin_for(cost_);
    Promise<void>* const event = to_fire.exchange(nullptr);
    if (event == nullptr) return 0;
    event->set();
    return 1;
  }

  void note_idle_poll() {
    const int thread = gettid();
    const long sleeps = sleeps_of_thread();
    if (idle_thread_.exchange(thread) != thread) {
      ++hand_overs;
      row_ = 0;
    } else if (sleeps != sleeps_) {
      ++naps;
    }
    row_ = looks_.exchange(0) == 1 && sleeps == sleeps_ ? row_ + 1 : 0;
    sleeps_ = sleeps;
    if (row_ > longest_row) longest_row.store(row_);
    ++idle_calls;
  }

  bool seek() {
    if (idle_thread_.load() == gettid()) ++looks_;
    return false;
  }

  const std::chrono::nanoseconds cost_;
  std::atomic<int> idle_thread_{0};
  std::atomic<int> looks_{0};  // by that thread, since its last poll
  std::atomic<int> row_{0};
  std::atomic<long> sleeps_{0};
  detail::Poller poller_{[](void* self) noexcept { return static_cast<Polled*>(self)->poll(); },
                         this, &outstanding};
};

class PollTest : public OnRuntime {
 protected:
  [[nodiscard]] static bool has_others() { return GetParam().workers > 1; }
  [[nodiscard]] static bool is_seeded() {
    return std::string(GetParam().policy).starts_with("seeded");
  }
};
INSTANTIATE_TEST_SUITE_P(All, PollTest, testing::ValuesIn(every_setup()), name_of);

// Naps begin by a clock, and a busy machine leaves few polls before them.
class WithoutNapsTest : public PollTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("IMBREX_NAP_US", "0", 1), 0);
    PollTest::SetUp();
    ASSERT_EQ(unsetenv("IMBREX_NAP_US"), 0);
  }
};
INSTANTIATE_TEST_SUITE_P(All, WithoutNapsTest, testing::ValuesIn(every_setup()), name_of);

class OneWorkerTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(OneWorker, OneWorkerTest, testing::ValuesIn(one_worker()), name_of);

// Methodology: once main waits, nothing is there to run. If several polled, the thread would change
// from poll to poll, and none would sleep.
TEST_P(PollTest, one_idle_worker_polls_and_the_others_sleep) {
  Polled polled(std::chrono::microseconds(1));
  Promise<void> over;
  std::thread watcher([&] {
    EXPECT_TRUE(comes_true([&] { return waits("main", "future") && polled.idle_calls > 0; }));
    const int before = polled.hand_overs;
    const int enough = polled.idle_calls + 200;
    EXPECT_TRUE(comes_true([&] {
      return polled.idle_calls > enough || polled.hand_overs != before;
    }));
    EXPECT_EQ(polled.hand_overs, before);
    EXPECT_TRUE(!has_others() || comes_true([] { return detail::worker_idles(); }));
    polled.to_fire.store(&over);
  });
  over.future().get();
  watcher.join();
}

// The next poll sees a completion, and that poll comes at once: between two polls the worker looks
// for tasks once, and does nothing else.
TEST_P(WithoutNapsTest, an_idle_worker_sees_a_completion_without_a_pause) {
  Polled polled(std::chrono::nanoseconds(100));
  Promise<void> arrived;
  std::thread sender([&] {
    EXPECT_TRUE(comes_true([&] {
      return polled.longest_row > 100 || polled.idle_calls > 10'000;
    }));
    EXPECT_GT(polled.longest_row, 100);
    polled.to_fire.store(&arrived);
  });
  arrived.future().get();
  sender.join();
}

// Methodology: no clock, so the test sees that there are naps, and not how long they are;
// silence_test.cpp has their lengths.
TEST_P(PollTest, when_nothing_comes_the_worker_naps_between_polls) {
  Polled polled(std::chrono::nanoseconds(100));
  Promise<void> arrived;
  std::thread sender([&] {
    EXPECT_TRUE(comes_true([&] { return waits("main", "future"); }));
    const int before = polled.naps;
    EXPECT_TRUE(comes_true([&] { return polled.naps >= before + 10; }));
    EXPECT_TRUE(!has_others() || comes_true([] { return detail::worker_idles(); }));
    polled.to_fire.store(&arrived);
  });
  arrived.future().get();
  sender.join();
}

// The worker that polls is woken for a task of its own; with others asleep, one of them goes on.
TEST_P(PollTest, another_worker_takes_over_when_the_one_that_polls_finds_a_task) {
  if (!has_others() || is_seeded()) return;
  Polled polled(std::chrono::microseconds(1));
  Promise<void> begin;
  std::thread firer([&] {
    EXPECT_TRUE(comes_true([&] {
      return waits("main", "future") && polled.idle_calls > 0 && detail::worker_idles();
    }));
    polled.to_fire.store(&begin);
  });
  begin.future().get();
  const int before = polled.calls.load();
  EXPECT_TRUE(comes_true([&] { return polled.calls >= before + 100; }));  // this worker is busy
  firer.join();
}

// Methodology: the time between many polls, of which each costs the same at least. A bound from
// below, which a busy machine only makes easier to keep.
TEST_P(OneWorkerTest, a_busy_worker_polls_for_two_percent_of_its_time) {
  constexpr std::chrono::microseconds cost{20};
  constexpr int polls = 50;
  Polled polled(cost);
  const auto work_for = [&polled](const int calls) {
    const int end = polled.calls + calls;
    return comes_true([&polled, end] {
      finish([] {
        for (int i = 0; i < 20; ++i) {
          task("short").launch([] { spin_for(std::chrono::microseconds(10)); });
        }
      });
      return polled.calls >= end;
    });
  };
  ASSERT_TRUE(work_for(150));  // until it knows what a poll costs: each adds a 16th at most
  const int before = polled.calls;
  const Clock::time_point begin = Clock::now();
  ASSERT_TRUE(work_for(polls)) << "but it does poll";
  const std::chrono::duration<double> spent = (polled.calls - before) * cost;
  EXPECT_LT(spent / (Clock::now() - begin), 0.03);
}

// Methodology: without the notice the next poll would be due after 50 times its cost, 10 ms.
TEST_P(OneWorkerTest, the_worker_polls_right_after_a_task_that_notices_a_completion) {
  Polled polled(std::chrono::microseconds(200));
  finish([&] {  // it learns the cost
    for (int i = 0; i < 200; ++i) task("notices").launch([&] { polled.noticed.store(true); });
  });
  int place = 0;
  finish([&] {
    task("notices").out(place).launch([&] {
      polled.calls.store(0);
      polled.noticed.store(true);
    });
    task("next").in(place).launch([&] {
      EXPECT_GE(polled.calls.load(), 1);
      EXPECT_FALSE(polled.noticed.load());
    });
  });
}

// Two tasks that hand over to each other by events never end, and never idle.
TEST_P(OneWorkerTest, tasks_that_only_suspend_let_the_worker_poll) {
  Polled polled(std::chrono::nanoseconds(100));
  constexpr std::size_t rounds = 1'000'000;
  constexpr detail::WaitReason reason{.kind = detail::WaitKind::event};
  std::vector<detail::EventWord> there(rounds);
  std::vector<detail::EventWord> back(rounds);
  std::atomic<bool> over{false};
  finish([&] {
    task("first").launch([&] {
      polled.calls.store(0);
      for (std::size_t i = 0; !over; ++i) {
        over = polled.calls > 10 || i + 1 == rounds;
        detail::fire(there[i]);
        detail::await(back[i], reason);
      }
      EXPECT_GT(polled.calls.load(), 10);
    });
    task("second").launch([&] {
      bool last = false;
      for (std::size_t i = 0; !last; ++i) {
        detail::await(there[i], reason);
        last = over;  // before the first can go on
        detail::fire(back[i]);
      }
    });
  });
}

TEST_P(PollTest, a_poller_with_a_thread_of_its_own_is_rung_and_called_by_no_worker) {
  Polled polled(std::chrono::nanoseconds(100), false);
  Promise<void> event;
  std::thread other([&] {
    EXPECT_TRUE(comes_true([&] { return polled.rings > 0 && waits("main", "future"); }));
    // A worker has found nothing to do, and so would have polled.
    EXPECT_TRUE(comes_true([&] { return polled.calls > 0 || detail::worker_idles(); }));
    event.set();
  });
  event.future().get();
  other.join();
  yield();
  EXPECT_EQ(polled.calls.load(), 0);
  EXPECT_FALSE(detail::nothing_ready()) << "tasks must not poll in place";
}

// The program's own thread blocks when it waits; the workers sleep, or are kept by what waits for
// that thread.
TEST_P(PollTest, a_foreign_thread_that_waits_polls_while_nobody_else_does) {
  Polled polled(std::chrono::nanoseconds(100));
  polled.outstanding.store(0);
  std::atomic<bool> went_on{false};
  std::thread foreign([&] {
    Promise<void> event;
    finish([] {});  // it is known from here on
    EXPECT_TRUE(!has_others() || comes_true([] { return detail::worker_idles(); }));
    polled.to_fire.store(&event);
    polled.outstanding.store(1);
    event.future().get();
    went_on.store(true);
  });
  EXPECT_TRUE(comes_true([&] { return went_on.load(); }));  // this worker is busy
  polled.outstanding.store(0);
  if (!went_on.load()) yield();
  foreign.join();
}

// Naps that begin after 0.5 ms, so that many fit in a short test.
class NapTest : public OnRuntime {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("IMBREX_NAP_US", "1", 1), 0);
    OnRuntime::SetUp();
  }
  void TearDown() override {
    OnRuntime::TearDown();
    ASSERT_EQ(unsetenv("IMBREX_NAP_US"), 0);
  }
};
INSTANTIATE_TEST_SUITE_P(All, NapTest, testing::ValuesIn(every_setup()), name_of);

// Methodology: a thread of the program gives the runtime something to do at all distances from the
// begin of a nap: a task, or something outstanding that the next poll completes.
TEST_P(NapTest, work_for_a_napping_thread_is_found_whenever_it_comes) {
  Polled polled(std::chrono::nanoseconds(100));
  Promise<void> over;
  std::thread giver([&] {
    std::uint64_t random = 2026;
    for (int i = 0; i < scaled(50); ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      spin_for(std::chrono::nanoseconds(random >> 44));  // up to 1 ms
      if (i % 2 == 0) {
        finish([] { task("short").launch([] {}); });
      } else {
        Promise<void> completed;
        polled.to_fire.store(&completed);
        detail::wake_poller();
        completed.future().get();
      }
    }
    // There are naps in this test, too.
    EXPECT_TRUE(comes_true([&, before = polled.naps.load()] { return polled.naps > before; }));
    polled.to_fire.store(&over);
  });
  over.future().get();
  giver.join();
}

}  // namespace
}  // namespace imbrex::test
