// SPDX-License-Identifier: BSD-3-Clause
// Who calls the pollers, and how often. The pollers here cost what the test says and complete
// nothing unless it says so.
#include <unistd.h>

#include <array>
#include <atomic>
#include <set>

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

// A poller with something outstanding; on the runtime while it lives.
class Polled {
 public:
  explicit Polled(std::chrono::nanoseconds cost, bool by_workers = true) : cost_(cost) {
    poller_.by_workers = by_workers;
    poller_.noticed = &noticed;
    poller_.ring = [](void* self) noexcept { ++static_cast<Polled*>(self)->rings; };
    detail::add_poller(poller_);
  }
  ~Polled() { detail::remove_poller(poller_); }
  Polled(const Polled&) = delete;
  Polled& operator=(const Polled&) = delete;

  [[nodiscard]] std::set<int> threads() {
    const std::lock_guard lock(mutex_);
    return threads_;
  }
  void forget_threads() {
    const std::lock_guard lock(mutex_);
    threads_.clear();
  }

  std::atomic<int> outstanding{1};
  std::atomic<int> calls{0};
  std::atomic<int> rings{0};
  std::atomic<bool> noticed{false};
  std::atomic<Event*> to_fire{nullptr};
  Clock::time_point seen;  // when it was found; published by the event

 private:
  int poll() {
    ++calls;
    noticed.store(false);
    {
      const std::lock_guard lock(mutex_);
      threads_.insert(static_cast<int>(gettid()));
    }
    spin_for(cost_);
    Event* const event = to_fire.exchange(nullptr);
    if (event == nullptr) return 0;
    seen = Clock::now();
    event->fire();
    return 1;
  }

  const std::chrono::nanoseconds cost_;
  std::mutex mutex_;  // guards threads_
  std::set<int> threads_;
  detail::Poller poller_{[](void* self) noexcept { return static_cast<Polled*>(self)->poll(); },
                         this, &outstanding};
};

class PollTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, PollTest, testing::ValuesIn(every_setup()), name_of);

class OneWorkerTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(OneWorker, OneWorkerTest, testing::ValuesIn(one_worker()), name_of);

TEST_P(PollTest, one_idle_worker_polls_and_the_others_sleep) {
  Polled polled(std::chrono::microseconds(1));
  Event over;
  std::thread watcher([&] {
    // They spin at first, and longer where the machine is busy.
    std::size_t pollers = 0;
    for (int round = 0; round < 50 && pollers != 1; ++round) {
      polled.forget_threads();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      pollers = polled.threads().size();
    }
    EXPECT_EQ(pollers, 1u);
    polled.to_fire.store(&over);
  });
  await(over);
  watcher.join();
}

// Methodology: another thread notes the time and makes something complete; the poll that finds it
// notes the time too. The least of many, since the machine may be busy.
TEST_P(PollTest, what_completes_while_a_worker_idles_is_seen_within_5_microseconds) {
  if (sanitized || GetParam().workers > static_cast<int>(std::thread::hardware_concurrency())) {
    return;
  }
  Polled polled(std::chrono::nanoseconds(100));
  Clock::duration least = std::chrono::seconds(1);
  for (int round = 0; round < 5000 && least > std::chrono::microseconds(5); ++round) {
    Event arrived;
    Clock::time_point sent;
    std::thread sender([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      sent = Clock::now();
      polled.to_fire.store(&arrived);
    });
    await(arrived);
    sender.join();
    least = std::min(least, polled.seen - sent);
  }
  EXPECT_LE(least, std::chrono::microseconds(5));
}

// The worker that polls is woken for a task of its own; with others asleep, one of them goes on.
TEST_P(PollTest, another_worker_takes_over_when_the_one_that_polls_finds_a_task) {
  if (GetParam().workers == 1 || std::string(GetParam().policy).starts_with("seeded")) return;
  Polled polled(std::chrono::microseconds(1));
  Event begin;
  std::thread firer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    polled.to_fire.store(&begin);
  });
  await(begin);
  const int before = polled.calls.load();
  const Clock::time_point end = Clock::now() + std::chrono::seconds(10);
  while (polled.calls.load() < before + 100 && Clock::now() < end) {  // this worker is busy
  }
  EXPECT_GE(polled.calls.load(), before + 100);
  firer.join();
}

TEST_P(OneWorkerTest, a_busy_worker_polls_for_two_percent_of_its_time) {
  constexpr std::chrono::microseconds cost{20};
  Polled polled(cost);
  const auto work_for = [](std::chrono::milliseconds duration) {
    const Clock::time_point end = Clock::now() + duration;
    while (Clock::now() < end) {
      finish([] {
        for (int i = 0; i < 20; ++i) {
          task("short").launch([] { spin_for(std::chrono::microseconds(10)); });
        }
      });
    }
  };
  work_for(std::chrono::milliseconds(100));  // until it knows what a poll costs
  const int before = polled.calls.load();
  const Clock::time_point begin = Clock::now();
  work_for(std::chrono::milliseconds(100));
  const std::chrono::duration<double> spent = (polled.calls.load() - before) * cost;
  EXPECT_LT(spent / (Clock::now() - begin), 0.03);
  EXPECT_GT(polled.calls.load(), before) << "but it does poll";
}

TEST_P(OneWorkerTest, what_has_been_noticed_is_polled_for_right_after_the_task) {
  Polled polled(std::chrono::microseconds(500));
  for (int i = 0; i < 100; ++i) yield();  // it learns the cost: the next is due after 25 ms
  finish([&] {
    task("notices").launch([&] {
      polled.calls.store(0);
      polled.noticed.store(true);
    });
    task("next").launch([] {});
  });
  EXPECT_GE(polled.calls.load(), 1);
  EXPECT_FALSE(polled.noticed.load());
}

// Two tasks that hand over to each other by events never end, and never idle.
TEST_P(OneWorkerTest, tasks_that_only_suspend_let_the_worker_poll) {
  Polled polled(std::chrono::nanoseconds(100));
  constexpr int rounds = 20'000;
  std::vector<Event> there(rounds);
  std::vector<Event> back(rounds);
  finish([&] {
    task("first").launch([&] {
      for (int i = 0; i < rounds; ++i) {
        there[static_cast<std::size_t>(i)].fire();
        await(back[static_cast<std::size_t>(i)]);
      }
      EXPECT_GT(polled.calls.load(), 10);
    });
    task("second").launch([&] {
      for (int i = 0; i < rounds; ++i) {
        await(there[static_cast<std::size_t>(i)]);
        back[static_cast<std::size_t>(i)].fire();
      }
    });
    polled.calls.store(0);
  });
}

TEST_P(PollTest, a_poller_with_a_thread_of_its_own_is_rung_and_called_by_no_worker) {
  Polled polled(std::chrono::nanoseconds(100), false);
  Event event;
  std::thread other([&] {
    while (polled.rings.load() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    event.fire();
  });
  await(event);
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
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // all others fall asleep
  std::atomic<bool> went_on{false};
  std::thread foreign([&] {
    Event event;
    finish([] {});  // it is known from here on
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    polled.to_fire.store(&event);
    polled.outstanding.store(1);
    await(event);
    went_on.store(true);
  });
  const Clock::time_point end = Clock::now() + std::chrono::seconds(10);
  while (!went_on.load() && Clock::now() < end) {  // this worker is busy
  }
  EXPECT_TRUE(went_on.load());
  polled.outstanding.store(0);
  if (!went_on.load()) yield();
  foreign.join();
}

}  // namespace
}  // namespace imbrex::test
