// SPDX-License-Identifier: BSD-3-Clause
// A creator far ahead of its tasks: it gives way, and leaves tasks for the other workers.
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

using namespace std::chrono_literals;

// Ends a round when each worker is in a task. A round that lacks a worker for 5 s ends them all.
class Rounds {
 public:
  explicit Rounds(const int workers) : workers_(workers) {}
  void wait() {
    std::unique_lock lock(mutex_);
    if (++inside_ == workers_) {
      inside_ = 0;
      ++round_;
      changed_.notify_all();
      return;
    }
    const int mine = round_;
    const bool is_full = changed_.wait_for(lock, lacks_ ? 0s : 5s, [&] { return round_ != mine; });
    if (is_full) return;
    --inside_;
    lacks_ = true;
  }
  [[nodiscard]] bool lacks() const noexcept { return lacks_; }
  [[nodiscard]] int round() const noexcept { return round_; }

 private:
  const int workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  int round_ = 0;
  bool lacks_ = false;
};

class WindowTest : public testing::TestWithParam<Setup> {};
INSTANTIATE_TEST_SUITE_P(All, WindowTest,
                         testing::ValuesIn(setups({2, 3, 4, 7}, unseeded_policies)), name_of);

// Methodology: a task ends when all workers are in a task, so the creator's worker is in a task
// until each other worker has found one. Independent tasks are always left to be created or to be
// run, so a worker without a task is one to which the creator has left none. No time decides.
TEST_P(WindowTest, every_worker_finds_a_task_while_the_creator_has_tasks_to_create) {
  const auto& [workers, policy] = GetParam();
  for (const int window : {1, 8, 10, 64, 512}) {
    const int rounds = scaled(2 * window + 100);
    Rounds all(workers);
    {
      const Runtime runtime({.workers = workers, .policy = policy, .tasks_ahead = window});
      finish([&] {
        for (int i = 0; i < rounds * workers; ++i) task("round").launch([&all] { all.wait(); });
      });
    }
    ASSERT_FALSE(all.lacks()) << "window " << window << ": a worker had no task in round "
                              << all.round() << " of " << rounds;
    EXPECT_EQ(all.round(), rounds);
  }
}

}  // namespace
}  // namespace imbrex::test
