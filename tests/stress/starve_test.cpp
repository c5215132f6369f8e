// SPDX-License-Identifier: BSD-3-Clause
// What a foreign thread makes ready begins, or goes on, before a thousand others have begun, how
// many ever are ready and whatever they spawn; and who gives way has its turn again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

constexpr long allowed = 1000;
constexpr int crowd_most = sanitized ? 3000 : 12'000;
constexpr int backlog = sanitized ? 2500 : 10'000;

// Tasks that have begun and compete with the awaited task.
struct Crowd {
  std::atomic<long> begun{0};
  std::atomic<long> found_at{-1};  // `begun` when that one began or went on
  std::atomic<bool> fire{false};
  std::atomic<bool> fires{false};

  // Called in each task of the crowd. Returns false if the crowd need not go on.
  bool join() {
    const long before = begun.fetch_add(1, std::memory_order_relaxed);
    if (before == 100) {
      fire.store(true, std::memory_order_release);
      while (!fires.load(std::memory_order_acquire)) std::this_thread::yield();
    }
    return found_at.load(std::memory_order_relaxed) < 0 && before < crowd_most;
  }
  void found() { found_at.store(begun.load()); }
};

// The way in which the awaited task waits for the foreign thread.
enum class Waits { to_begin, to_go_on, tied, to_be_spawned };
constexpr const char* text_of(const Waits waits) {
  constexpr const char* texts[] = {"one that waits to begin", "one that waits to go on",
                                   "a tied one", "one that a foreign thread spawns"};
  return texts[static_cast<int>(waits)];
}

// Returns how many tasks of the crowd began between the foreign thread's act and its effect. A
// moment's delay of a worker counts for many if several work.
long passed_over(const Waits waits, const std::function<void(Crowd&)>& run_crowd) {
  Crowd crowd;
  std::atomic<long> fired_at{0};
  finish([&] {
    Promise<void> go("go"), done("done");
    Promise<void> event;
    if (waits == Waits::to_begin) {
      task("the one").in(go.future()).launch([&crowd] { crowd.found(); });
    } else if (waits != Waits::to_be_spawned) {
      auto builder = task("the one");
      if (waits == Waits::tied) (void)builder.tied();
      builder.launch([&] {
        event.future().get();
        crowd.found();
      });
      yield();
    }
    std::thread thread([&] {
      while (!crowd.fire.load(std::memory_order_acquire)) std::this_thread::yield();
      Future<void> spawned;
      crowd.fires.store(true, std::memory_order_release);
      if (waits == Waits::to_begin) {
        go.set();
      } else if (waits == Waits::to_be_spawned) {
        spawned = task("the one").spawn([&crowd] { crowd.found(); });
      } else {
        event.set();
      }
      fired_at.store(crowd.begun.load());
      if (spawned.valid()) spawned.get();
      done.set();
    });
    run_crowd(crowd);
    done.future().get();  // join() would block the worker
    thread.join();
  });
  EXPECT_GE(crowd.found_at.load(), 0);
  return crowd.found_at.load() - fired_at.load();
}

class StarveTest : public testing::TestWithParam<Setup> {
 protected:
  // The least of several rounds, unless one is good enough at once.
  void expect_soon(const char* const what, const Waits waits,
                   const std::function<void(Crowd&)>& run_crowd) {
    long least = LONG_MAX;
    for (int round = 0; round < 8 && least > allowed; ++round) {
      RuntimeOptions made = config(GetParam().workers, GetParam().policy);
      made.tasks_ahead = window_;
      const Runtime runtime(made);
      least = std::min(least, passed_over(waits, run_crowd));
    }
    EXPECT_LE(least, allowed) << text_of(waits) << ", " << what << ", " << GetParam();
  }
  [[nodiscard]] bool has_policy(const std::string& name) const {
    return std::string(GetParam().policy).starts_with(name);
  }
  // The policy runs the task that is spawned last as the last one.
  [[nodiscard]] bool may_be_spawned() const {
    return GetParam().policy[0] == '\0' || has_policy("steal") || has_policy("seeded");
  }
  std::vector<Waits> all_waits() const {
    std::vector<Waits> all{Waits::to_begin, Waits::to_go_on};
    // The others are no competitors of the worker that it waits for.
    if (GetParam().workers == 1) all.push_back(Waits::tied);
    if (may_be_spawned()) all.push_back(Waits::to_be_spawned);
    return all;
  }
  int window_ = -1;
};

TEST_P(StarveTest, a_task_made_ready_by_a_foreign_thread_passes_a_backlog) {
  window_ = 0;  // no spawner gives way before the backlog is there
  for (const Waits waits : all_waits()) {
    expect_soon("a backlog", waits, [](Crowd& crowd) {
      int gate = 0;
      // Half of them declare nothing, half are released by one.
      task("gate").out(gate).launch([] {});
      for (int i = 0; i < backlog / 2; ++i) task("free").launch([&] { (void)crowd.join(); });
      for (int i = 0; i < backlog / 2; ++i) {
        task("released").in(gate).launch([&] { (void)crowd.join(); });
      }
      taskwait();
    });
  }
}

void spawn_one_after_another(Crowd& crowd) {
  task("next").launch([&crowd] {
    if (crowd.join()) spawn_one_after_another(crowd);
  });
}

TEST_P(StarveTest, a_task_made_ready_by_a_foreign_thread_passes_endless_spawning) {
  const struct {
    const char* name;
    std::function<void(Crowd&)> run;
  } crowds[] = {
      {"a loop",
       [](Crowd& crowd) {
         task("spawner").launch([&crowd] {
           std::atomic<bool> more{true};
           while (more.load()) {
             task("child").launch([&] {
               if (!crowd.join()) more.store(false);
             });
           }
           taskwait();
         });
         taskwait();
       }},
      {"a chain by an access",
       [](Crowd& crowd) {
         int x = 0;
         task("spawner").launch([&crowd, &x] {
           for (int i = 0; i < crowd_most; ++i) {
             task("link").inout(x).launch([&] { (void)crowd.join(); });
           }
           taskwait();
         });
         taskwait();
       }},
      {"waits in place",
       [](Crowd& crowd) {
         task("spawner").launch([&crowd] {
           while (task("child").spawn([&] { return crowd.join(); }).get()) continue;
         });
         taskwait();
       }},
      {"one after another", [](Crowd& crowd) { spawn_one_after_another(crowd); taskwait(); }},
  };
  for (const auto& crowd : crowds) {
    for (const Waits waits : all_waits()) {
      expect_soon(crowd.name, waits, crowd.run);
    }
  }
}

TEST_P(StarveTest, a_task_made_ready_by_a_foreign_thread_passes_a_recursion) {
  for (const Waits waits : all_waits()) {
    expect_soon("a recursion", waits, [](Crowd& crowd) {
      const std::function<void(int)> branch = [&](const int depth) {
        if (depth == 0) return;
        auto left = task("left").spawn([&, depth] {
          if (crowd.join()) branch(depth - 1);
        });
        branch(depth - 1);
        left.get();
      };
      task("root").launch([&] { branch(sanitized ? 10 : 13); });
      taskwait();
    });
  }
}

// Methodology: the others go on until it has had its turns, or for longer than any system takes to
// give each worker's thread a processor.
TEST_P(StarveTest, a_spawner_that_gives_way_resumes_though_others_keep_spawning) {
  const Runtime runtime(config(GetParam().workers, GetParam().policy));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::atomic<bool> done{false};
  std::atomic<bool> given_up{false};
  const std::function<void()> next = [&] {
    if (done.load()) return;
    if (std::chrono::steady_clock::now() > deadline) {
      given_up.store(true);
    } else {
      task("next").launch([&] { next(); });
    }
  };
  finish([&] {
    task("gives way").launch([&] {
      for (int i = 0; i < 3; ++i) next();
      for (int i = 0; i < 5; ++i) yield();
      done.store(true);
    });
  });
  EXPECT_FALSE(given_up.load());
}

// Not fa and ga: what leads to a task of a kind that they have not seen comes first there.
const std::vector<const char*> policies = [] {
  std::vector<const char*> names = all_policies;
  std::erase_if(names, [](const std::string_view name) { return name == "fa" || name == "ga"; });
  return names;
}();
INSTANTIATE_TEST_SUITE_P(All, StarveTest, testing::ValuesIn(setups({1, 2, 8}, policies)),
                         name_of);

}  // namespace
}  // namespace imbrex::test
