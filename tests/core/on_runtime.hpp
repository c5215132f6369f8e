// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the core share: a runtime for each test, under every policy and several numbers
// of workers, and the check that nothing is left when it stops.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/tables/policies.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/imbrex.hpp"

namespace imbrex::test {

// Sanitizers make everything slower and allow few fibers: then counts are divided by this.
constexpr int scaled(int count) { return std::max(1, count / IMBREX_TEST_SCALE); }
constexpr bool sanitized = IMBREX_TEST_SCALE > 1;

struct Setup {
  int workers;
  const char* policy;  // as in IMBREX_POLICY; empty: the default
};

inline std::ostream& operator<<(std::ostream& out, const Setup& setup) {
  return out << setup.workers << " workers, policy \"" << setup.policy << '"';
}

inline std::vector<Setup> setups(const std::vector<int>& workers,
                                 const std::vector<const char*>& policies) {
  std::vector<Setup> all;
  for (const char* policy : policies) {
    for (const int count : workers) all.push_back({count, policy});
  }
  return all;
}
// The empty text is the default one.
inline const std::vector<const char*> unseeded_policies = [] {
  std::vector<const char*> names;
  for (const std::string_view name : base::policy_names) {
    if (name != "seeded") names.push_back(name == "default" ? "" : name.data());
  }
  return names;
}();
inline const std::vector<const char*> all_policies = [] {
  std::vector<const char*> names = unseeded_policies;
  names.push_back("seeded:2026");  // other orders: the fuzzers, which draw their seeds
  return names;
}();
inline std::vector<Setup> every_policy(const std::vector<int>& workers) {
  return setups(workers, all_policies);
}
inline std::vector<Setup> every_setup() { return every_policy({1, 2, 4, 8}); }
inline std::vector<Setup> one_worker() { return every_policy({1}); }

// "default_w4", "seeded2026_w1"; the names by which CMakeLists.txt selects a policy.
inline std::string name_of(const testing::TestParamInfo<Setup>& info) {
  std::string name = info.param.policy[0] == '\0' ? "default" : info.param.policy;
  std::erase(name, ':');
  return name + "_w" + std::to_string(info.param.workers);
}

// True as soon as `is_so()`; false after two minutes, which is longer than any system keeps a
// thread from its processor. Other threads run meanwhile, but no task on the calling worker.
template <class F>
bool comes_true(F&& is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Returns whether a task of this name ("main" and "foreign thread" are names, too) waits for
// `what`, as reports name it. The answer is old at once, so it serves only to wait until a task
// that will not go on by itself has got there.
inline bool waits(const std::string& name, const std::string& what) {
  const std::vector<detail::TaskView> views = detail::view_tasks(false);
  return std::ranges::any_of(views, [&](const detail::TaskView& view) {
    return !view.runs && view.task.name == name && view.waits_for.find(what) != std::string::npos;
  });
}

// A descriptor is given back by the worker that ran the task, perhaps a moment after the last
// waiter went on; so the counts are read until they are zero.
inline Statistics final_statistics() {
  Statistics now;
  (void)comes_true([&now] {
    if (detail::in_task()) yield();
    now = statistics();
    return now.live_tasks == 0 && now.suspended_tasks == 0;
  });
  return now;
}

inline RuntimeOptions config(int workers, const std::string& policy) {
  RuntimeOptions made;
  made.workers = workers;
  made.policy = policy;
  return made;
}

// The test's own code is the root task of a runtime with these workers and this policy.
class OnRuntime : public testing::TestWithParam<Setup> {
 protected:
  void SetUp() override { start(config(GetParam().workers, GetParam().policy)); }
  void start(const RuntimeOptions& config) { runtime_ = std::make_unique<Runtime>(config); }

  void TearDown() override {
    SCOPED_TRACE(testing::Message() << GetParam());
    detail::drain();
    const Statistics left = final_statistics();
    EXPECT_EQ(left.live_tasks, 0u);
    EXPECT_EQ(left.suspended_tasks, 0u);
    runtime_.reset();
  }

 private:
  std::unique_ptr<Runtime> runtime_;
};

// A list of events in their order. Thread safety: any thread.
class Log {
 public:
  void add(int entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(entry);
  }
  [[nodiscard]] std::vector<int> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int> entries_;
};

// Returns whether another task than the calling one runs, or could. Threads of the program's own do
// not count.
inline bool others_run() {
  const std::uint64_t own = detail::current_task().id;
  const std::vector<detail::TaskView> views = detail::view_tasks(false);
  return std::ranges::any_of(views, [own](const detail::TaskView& view) {
    return view.runs && view.task.id != own && view.task.name != std::string("foreign thread");
  });
}

// Runs all ready tasks, until each task but the calling one has ended or waits: a task that must
// not run yet would have run. The function is exact with one worker and under the seeded policy.
// With several workers, a worker may be between two tasks: so the function looks twice, and gives
// other threads a turn before each look.
inline void let_others_run() {
  for (int looks = 0; looks < 2;) {
    yield();
    std::this_thread::yield();
    looks = others_run() ? 0 : looks + 1;
  }
}

}  // namespace imbrex::test
