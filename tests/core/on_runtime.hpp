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
#include <thread>
#include <vector>

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
inline const std::vector<const char*> unseeded_policies{"",    "steal", "fifo", "priority", "ma1",
                                                        "ma2", "ma3",   "sa",   "fa",       "ga"};
inline std::vector<Setup> every_policy(const std::vector<int>& workers) {
  std::vector<const char*> policies = unseeded_policies;
  policies.insert(policies.end(), {"seeded:1", "seeded:2026"});
  return setups(workers, policies);
}
inline std::vector<Setup> every_setup() { return every_policy({1, 2, 4, 8}); }
inline std::vector<Setup> one_worker() { return every_policy({1}); }

// "default_w4", "seeded2026_w1"; the names by which CMakeLists.txt selects a policy.
inline std::string name_of(const testing::TestParamInfo<Setup>& info) {
  std::string name = info.param.policy[0] == '\0' ? "default" : info.param.policy;
  std::erase(name, ':');
  return name + "_w" + std::to_string(info.param.workers);
}

// A descriptor is given back by the worker that ran the task, perhaps a moment after the last
// waiter went on; so the counts are read until they are zero, or for two seconds.
inline Statistics settled_statistics() {
  Statistics now = statistics();
  for (int round = 0; round < 2000 && (now.live_tasks != 0 || now.suspended_tasks != 0); ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    now = statistics();
  }
  return now;
}

inline Config config(int workers, const std::string& policy) {
  Config made;
  made.workers = workers;
  made.policy = policy;
  return made;
}

// The test's own code is the root task of a runtime with these workers and this policy.
class OnRuntime : public testing::TestWithParam<Setup> {
 protected:
  void SetUp() override { start(config(GetParam().workers, GetParam().policy)); }
  void start(const Config& config) { runtime_ = std::make_unique<Runtime>(config); }

  void TearDown() override {
    SCOPED_TRACE(testing::Message() << GetParam());
    detail::drain();
    const Statistics left = settled_statistics();
    EXPECT_EQ(left.live_tasks, 0u);
    EXPECT_EQ(left.suspended_tasks, 0u);
    runtime_.reset();
  }

 private:
  std::unique_ptr<Runtime> runtime_;
};

// What happened, in order. Thread safety: any thread.
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

// Gives everything that is ready the chance to run, so that what must not run yet would.
inline void let_others_run() {
  for (int round = 0; round < 20; ++round) yield();
  std::this_thread::sleep_for(std::chrono::microseconds(200));
}

}  // namespace imbrex::test
