// SPDX-License-Identifier: BSD-3-Clause
// A ready task begins although its wake-up went to a worker that turned to something else: a tied
// task, or a function of the program in a poll (docs/design/wake-ups.md). Whatever must not run the
// task blocks its thread outside of imbrex until the task has begun. Methodology: each test has one
// worker more than it blocks, and that worker sleeps. A lost wake-up therefore shows as a task that
// never begins; no clock decides.
#include <unistd.h>

#include <atomic>
#include <vector>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

constexpr int rounds = sanitized ? 20 : 50;

// Idle workers are asleep after this time, in most rounds.
void let_them_sleep() { usleep(1000); }

void block_until(const std::atomic<bool>& flag) {
  EXPECT_TRUE(comes_true([&flag] {
    usleep(20);
    return flag.load();
  }));
}

class WakeTest : public OnRuntime {
 protected:
  [[nodiscard]] static int workers() { return GetParam().workers; }
};
INSTANTIATE_TEST_SUITE_P(All, WakeTest, testing::ValuesIn(setups({3, 4, 8}, unseeded_policies)),
                         name_of);

// Tied tasks, one on each worker but the first, which wait for their promises.
class TiedTasks {
 public:
  explicit TiedTasks(const int count) : promises_(static_cast<std::size_t>(count)) {}
  // Returns when all wait; `go_on` is called in each once its promise is set.
  template <class F>
  void spawn(F go_on) {
    for (std::size_t i = 0; i < promises_.size(); ++i) {
      task("tied").tied().launch([this, i, go_on] {
        ++begun_;
        while (begun_.load() < static_cast<int>(promises_.size())) usleep(20);
        promises_[i].future().get();
        go_on(i);
      });
    }
    ASSERT_TRUE(comes_true([this] { return begun_.load() == static_cast<int>(promises_.size()); }));
  }
  void set(const std::size_t index) { promises_[index].set(); }

 private:
  std::vector<Promise<void>> promises_;
  std::atomic<int> begun_{0};
};

void push_and_wake_a_tied_task(const int workers, const bool tied_first) {
  for (int round = 0; round < rounds; ++round) {
    const auto count = static_cast<std::size_t>(workers - 1);
    const std::size_t chosen = static_cast<std::size_t>(round) % count;
    TiedTasks tied(workers - 1);
    std::atomic<bool> ran{false};
    finish([&] {
      tied.spawn([&ran](std::size_t) { block_until(ran); });
      let_them_sleep();
      if (tied_first) tied.set(chosen);
      task("free").launch([&ran] { ran = true; });
      if (!tied_first) tied.set(chosen);
      block_until(ran);
      for (std::size_t i = 0; i < count; ++i) {
        if (i != chosen) tied.set(i);
      }
    });
  }
}

TEST_P(WakeTest, a_tied_task_that_takes_the_woken_worker_does_not_take_the_wake_up) {
  push_and_wake_a_tied_task(workers(), false);
}
TEST_P(WakeTest, a_push_after_a_tied_task_wakes_another_worker) {
  push_and_wake_a_tied_task(workers(), true);
}

// A poller whose next poll by an idle worker blocks in a function of the program, until `go_on`.
// Before, it sets a promise, if there is one. (A task that is about to suspend polls on its own
// stack, and cannot resume while the function runs.)
class Blocking {
 public:
  Blocking() {
    detail::add_poller(poller_);
    detail::wake_poller();
  }
  ~Blocking() { detail::remove_poller(poller_); }
  Blocking(const Blocking&) = delete;
  Blocking& operator=(const Blocking&) = delete;

  void arm(Promise<void>* const to_set) {
    ASSERT_TRUE(comes_true([this] { return !polls_.load(); }));  // the last round's function
    to_set_ = to_set;
    go_on = false;
    armed_ = true;
  }
  std::atomic<bool> blocks{false};  // the function runs
  std::atomic<bool> go_on{false};

 private:
  int poll() {
    if (detail::in_task() || !armed_.load() || polls_.exchange(true)) return 0;
    if (!armed_.exchange(false)) {
      polls_ = false;
      return 0;
    }
    if (to_set_ != nullptr) to_set_->set();
    detail::enter_callback("MPI_Something");
    blocks = true;
    block_until(go_on);
    detail::leave_callback();
    blocks = false;
    polls_ = false;
    return 1;
  }

  std::atomic<bool> armed_{false};
  std::atomic<bool> polls_{false};  // from before the promise is set to the end of the function
  Promise<void>* to_set_ = nullptr;
  std::atomic<int> outstanding_{1};
  detail::Poller poller_{.poll = [](void* self) noexcept {
                           return static_cast<Blocking*>(self)->poll();
                         },
                         .context = this,
                         .outstanding = &outstanding_};
};

TEST_P(WakeTest, a_push_wakes_no_worker_that_naps_in_a_function_of_the_program) {
  Blocking poller;
  for (int round = 0; round < rounds / 10; ++round) {
    std::atomic<bool> ran{false};
    finish([&] {
      usleep(40'000);  // polls between naps
      poller.arm(nullptr);
      block_until(poller.blocks);
      let_them_sleep();
      task("free").launch([&] {
        ran = true;
        poller.go_on = true;
      });
      block_until(ran);
    });
  }
}

TEST_P(WakeTest, a_task_that_a_poll_made_ready_begins_though_the_poll_blocks) {
  Blocking poller;
  for (int round = 0; round < rounds; ++round) {
    Promise<void> ready;
    std::atomic<bool> ran{false};
    finish([&] {
      task("waits").launch([&] {
        ready.future().get();
        ran = true;
        poller.go_on = true;
      });
      EXPECT_TRUE(comes_true([] { return waits("waits", ""); }));
      let_them_sleep();
      poller.arm(&ready);
      block_until(ran);
    });
  }
}

}  // namespace
}  // namespace imbrex::test
