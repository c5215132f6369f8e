// SPDX-License-Identifier: BSD-3-Clause
// Stopping the tasks of a finish().
//
// Methodology: a gate that all other tasks follow makes the moment of the stop certain: none of
// them has begun. The last test draws programs, and stops them at any moment.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

struct Broken : std::runtime_error {
  Broken() : std::runtime_error("broken") {}
};
constexpr FinishOptions stops{.on_error = OnError::stop};

using StopTest = OnRuntime;

TEST_P(StopTest, tasks_that_have_not_begun_are_dropped) {
  std::atomic<int> ran{0};
  std::vector<Future<int>> futures;
  int gate = 0;
  finish([&](Scope scope) {
    task("gate").out(gate).launch([&scope] { scope.request_stop(); });
    for (int i = 0; i < 100; ++i) {
      futures.push_back(task("later").in(gate).spawn([&ran, i] { return ran += 1, i; }));
    }
    taskwait();
    EXPECT_TRUE(scope.stop_requested());
  });
  EXPECT_EQ(ran.load(), 0);
  for (Future<int>& future : futures) EXPECT_THROW((void)future.get(), Cancelled);
  int after = 0;
  finish([&] { task("after").in(gate).launch([&after] { after = 1; }); });  // as if it was written
  EXPECT_EQ(after, 1);
}

TEST_P(StopTest, the_first_exception_stops_the_others_and_is_rethrown) {
  std::atomic<int> ran{0};
  int gate = 0;
  try {
    finish(stops, [&] {
      task("breaks").out(gate).launch([] { throw Broken(); });
      for (int i = 0; i < 50; ++i) task("later").inoutset(gate).launch([&ran] { ++ran; });
      for (int i = 0; i < 50; ++i) {
        task("deep").in(gate).launch([&ran] { task("child").launch([&ran] { ++ran; }); });
      }
    });
    ADD_FAILURE() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 6), "broken");
    EXPECT_EQ(std::string(error.what()).find("other tasks"), std::string::npos);
  }
  EXPECT_EQ(ran.load(), 0);
}

TEST_P(StopTest, an_exception_of_the_body_stops_the_tasks) {
  std::atomic<int> ran{0};
  Promise<void> gate;
  EXPECT_THROW(finish(stops, [&] {
    for (int i = 0; i < 20; ++i) task("later").in(gate.future()).launch([&ran] { ++ran; });
    task("opens").run_after_failure().launch([&](const std::stop_token stop) {
      while (!stop.stop_requested()) yield();
      gate.set();
    });
    throw Broken();
  }), Broken);
  EXPECT_EQ(ran.load(), 0);
}

TEST_P(StopTest, a_running_task_sees_the_stop) {
  std::atomic<bool> saw{false};
  finish([&](Scope scope) {
    task("runs").launch([&](const std::stop_token stop) {
      EXPECT_TRUE(stop.stop_possible());
      while (!stop.stop_requested()) yield();
      saw = true;
    });
    Future<int> value = task("returns").spawn([](std::stop_token) { return 7; });
    EXPECT_EQ(value.get(), 7);
    scope.request_stop();
  });
  task("outside").spawn([&](const std::stop_token stop) {
    EXPECT_FALSE(stop.stop_possible());
  }).get();
}

TEST_P(StopTest, a_finish_within_stops_with_the_one_around_it_and_not_the_other_way) {
  std::atomic<int> ran{0};
  finish([&](Scope outer) {
    finish([&](Scope inner) {
      inner.request_stop();
      task("dropped").launch([&ran] { ran += 100; });
    });
    EXPECT_FALSE(outer.stop_requested());
    task("runs").spawn([&ran] { ++ran; }).get();
    finish([&](const Scope inner) {
      outer.request_stop();
      EXPECT_TRUE(inner.stop_requested());
      task("dropped").launch([&ran] { ran += 100; });
    });
    finish([&] { task("dropped").launch([&ran] { ran += 100; }); });
    finish(stops, [&] { task("dropped").launch([&ran] { ran += 100; }); });
  });
  EXPECT_EQ(ran.load(), 1);
}

TEST_P(StopTest, an_error_that_a_plain_finish_rethrows_inside_stops_nothing) {
  std::atomic<int> ran{0};
  finish(stops, [&] {
    task("handles").spawn([] {
      EXPECT_THROW(finish([] { task("breaks").launch([] { throw Broken(); }); }), Broken);
    }).get();
    task("runs").spawn([&ran] { ++ran; }).get();
  });
  EXPECT_EQ(ran.load(), 1);
}

TEST_P(StopTest, tasks_for_clean_up_run_all_the_same) {
  int data = 0;
  std::atomic<int> cleaned{0};
  finish([&](Scope scope) {
    scope.request_stop();
    task("dropped").out(data).launch([] { ADD_FAILURE(); });
    task("cleans").inout(data).run_after_failure().launch([&cleaned] { ++cleaned; });
  });
  EXPECT_EQ(cleaned.load(), 1);
}

TEST_P(StopTest, a_body_that_awaits_a_dropped_task_ends_without_an_exception) {
  bool after = false;
  finish([&](Scope scope) {
    scope.request_stop();
    task("dropped").spawn([] {}).get();
    after = true;
  });
  EXPECT_FALSE(after);
  Future<void> dropped;
  finish([&](Scope scope) {
    scope.request_stop();
    dropped = task("dropped").spawn([] {});
    task("awaits").run_after_failure().launch([&] { dropped.get(); });
  });
  EXPECT_THROW(finish([&] { task("awaits outside").launch([&] { dropped.get(); }); }), Cancelled);
}

TEST_P(StopTest, closures_of_dropped_tasks_are_destroyed) {
  const auto shared = std::make_shared<int>(0);
  finish([&](Scope scope) {
    scope.request_stop();
    for (int i = 0; i < 10; ++i) task("dropped").launch([shared] { ADD_FAILURE(); });
  });
  EXPECT_EQ(shared.use_count(), 1);
}

TEST_P(StopTest, a_dropped_task_leaves_its_phaser) {
  finish([&](Scope scope) {
    const Phaser step(signal_wait);
    task("goes on").phased(step).run_after_failure().launch([=] {
      for (int i = 0; i < 3; ++i) step.next();
    });
    scope.request_stop();
    task("dropped").phased(step).launch([=] { step.next(); });
  });
}

TEST_P(StopTest, a_loop_ends) {
  std::atomic<int> ran{0};
  int data = 0;
  finish([&](Scope scope) {
    iterate(1'000'000, [&](std::int64_t) {
      task("step").inout(data).launch([&, scope]() mutable {
        if (++ran == 5) scope.request_stop();
      });
    });
  });
  EXPECT_EQ(ran.load(), 5);
}

TEST_P(StopTest, any_thread_stops_and_a_copy_outlives_the_finish) {
  std::optional<Scope> kept;
  finish([&](Scope scope) {
    kept = scope;
    task("waits").launch([](const std::stop_token stop) {
      while (!stop.stop_requested()) yield();
    });
    std::thread([&scope] { scope.request_stop(); }).join();
  });
  std::atomic<int> ran{0};
  kept->request_stop();
  finish([&] { task("runs").launch([&ran] { ++ran; }); });
  EXPECT_EQ(ran.load(), 1);
}

// ---- random programs -------------------------------------------------------------------------

// Spawns a tree of tasks with accesses, futures and scopes, each of which may stop. Every task that
// was spawned must run once or be dropped, and every closure be destroyed.
class RandomTree {
 public:
  explicit RandomTree(const unsigned seed) : seed_(seed) {}

  void run() {
    Random random(seed_);
    try {
      finish(stops, [&](Scope scope) { grow(scope, random, 0); });
    } catch (const std::runtime_error&) {  // Broken, or a consequence
    }
    EXPECT_EQ(begun_.load() + dropped_.load(), spawned_.load()) << "seed " << seed_;
    EXPECT_EQ(twice_.load(), 0) << "seed " << seed_;
  }

 private:
  using Random = std::minstd_rand;
  static constexpr int depth_max = 4;

  // Counts its destruction without a run as a drop.
  class Once {
   public:
    explicit Once(RandomTree& tree) : tree_(&tree) { ++tree.spawned_; }
    Once(Once&& other) noexcept : tree_(std::exchange(other.tree_, nullptr)), ran_(other.ran_) {}
    Once& operator=(Once&&) = delete;
    ~Once() {
      if (tree_ != nullptr && !ran_) ++tree_->dropped_;
    }
    void run() {
      if (ran_) ++tree_->twice_;
      ran_ = true;
      ++tree_->begun_;
    }

   private:
    RandomTree* tree_;
    bool ran_ = false;
  };

  void grow(Scope scope, Random& random, const int depth) {
    std::vector<Future<void>> futures;
    const auto count = static_cast<int>(random() % 8);
    for (int i = 0; i < count; ++i) {
      auto builder = task("node");
      int& datum = data_[random() % data_.size()];
      auto& with_datum = random() % 3 == 0 ? builder.in(datum) : builder.inout(datum);
      if (random() % 3 == 0 && !futures.empty()) {
        with_datum = with_datum.in(futures[random() % futures.size()]);
      }
      futures.push_back(builder.spawn([this, scope, depth, once = Once(*this),
                                       seed = random()]() mutable {
        once.run();
        Random own(static_cast<unsigned>(seed));
        work(scope, own, depth + 1);
      }));
    }
    if (random() % 8 == 0) scope.request_stop();
    if (random() % 4 == 0) taskwait();
    if (random() % 4 == 0 && !futures.empty()) futures[random() % futures.size()].get();
  }

  void work(Scope scope, Random& random, const int depth) {
    if (random() % 3 == 0) yield();
    if (random() % 25 == 0) throw Broken();
    if (random() % 25 == 0) scope.request_stop();
    if (depth == depth_max) return;
    switch (random() % 4) {
      case 0: finish([&] { grow(scope, random, depth); }); break;
      case 1: finish([&](Scope inner) { grow(inner, random, depth); }); break;
      case 2: finish(stops, [&](Scope inner) { grow(inner, random, depth); }); break;
      default: grow(scope, random, depth);
    }
  }

  const unsigned seed_;
  std::array<int, 6> data_{};
  std::atomic<int> spawned_{0}, begun_{0}, dropped_{0}, twice_{0};
};

TEST_P(StopTest, random_programs_that_stop_run_or_drop_each_task_once) {
  std::random_device device;
  for (int round = 0; round < scaled(60); ++round) RandomTree(device()).run();
}

INSTANTIATE_TEST_SUITE_P(All, StopTest, testing::ValuesIn(every_setup()), name_of);

}  // namespace
}  // namespace imbrex::test
