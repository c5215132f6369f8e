// SPDX-License-Identifier: BSD-3-Clause
// Tasks at places: where they begin, go on after a wait, and what they hand on to their children.
#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "on_runtime.hpp"

namespace imbrex::test {

namespace {

// Two places, of which each has half of the workers; the only one has both.
std::string halves(const int workers) {
  const int half = workers / 2;
  if (workers == 1) return "0/1";
  const auto range = [](const int first, const int last) {
    return first == last ? std::to_string(first)
                         : std::to_string(first) + "-" + std::to_string(last);
  };
  return range(0, half - 1) + "/" + range(half, workers - 1);
}

class PlaceTest : public testing::TestWithParam<Setup> {
 protected:
  void SetUp() override { start(halves(workers())); }
  void TearDown() override {
    SCOPED_TRACE(testing::Message() << GetParam());
    detail::drain();
    const Statistics left = final_statistics();
    EXPECT_EQ(left.live_tasks, 0u);
    EXPECT_EQ(left.suspended_tasks, 0u);
    EXPECT_EQ(astray_.load(), 0);
    runtime_.reset();
  }

  [[nodiscard]] static int workers() { return GetParam().workers; }
  void start(const std::string& places) {
    runtime_.reset();
    RuntimeOptions made = config(workers(), GetParam().policy);
    made.places = places;
    runtime_ = std::make_unique<Runtime>(made);
  }
  // Counts what runs where it must not. `place` is one of the halves, or -1.
  void look(const int place) {
    const int worker = current_worker();
    bool right = worker >= 0 && worker < workers() && current_place().index() == place;
    if (place >= 0 && workers() > 1) {
      right = right && (worker >= workers() / 2) == (place == 1) && local_place().index() == place;
    }
    if (!right) astray_.fetch_add(1);
  }
  [[nodiscard]] int astray() const { return astray_.load(); }

  std::unique_ptr<Runtime> runtime_;

 private:
  std::atomic<int> astray_{0};
};

TEST_P(PlaceTest, a_task_runs_and_goes_on_at_its_place_and_so_do_its_children) {
  std::atomic<int> ran{0};
  finish([&] {
    for (int number = 0; number < scaled(100); ++number) {
      const int at = number % 2;
      task("parent").at(place(at)).launch([&, at] {
        look(at);
        Promise<void> event;
        task("child").launch([&, at] {
          look(at);
          yield();
          look(at);
          event.set();
          ran.fetch_add(1);
        });
        event.future().get();
        look(at);
        auto answer = task("other place").at(place(1 - at)).spawn([&, at] {
          look(1 - at);
          yield();
          look(1 - at);
          return 42;
        });
        EXPECT_EQ(answer.get(), 42);
        look(at);
        taskwait();
        look(at);
        ran.fetch_add(1);
      });
    }
  });
  EXPECT_EQ(ran.load(), 2 * scaled(100));
}

TEST_P(PlaceTest, all_workers_are_a_place_like_others) {
  std::atomic<int> ran{0};
  finish([&] {
    task("at 1").at(place(1)).launch([&] {
      look(1);
      task("anywhere").at(Place()).launch([&] {
        look(-1);
        task("child").launch([&] {
          look(-1);
          ran.fetch_add(1);
        });
      });
    });
  });
  EXPECT_EQ(ran.load(), 1);
  EXPECT_EQ(Place().worker_count(), workers());
  EXPECT_EQ(Place().name(), "all workers");
  EXPECT_EQ(current_place(), Place());
}

TEST_P(PlaceTest, a_finish_waits_for_the_tasks_of_every_place) {
  const auto sum = [&](auto&& self, const int depth, const int at) -> int {
    look(at);
    if (depth == 0) return 1;
    int left = 0, right = 0;
    finish([&] {
      task("left").launch([&] { left = self(self, depth - 1, at); });
      task("right").at(place(1 - at)).launch([&] { right = self(self, depth - 1, 1 - at); });
    });
    look(at);
    return left + right;
  };
  const int depth = sanitized ? 5 : 8;
  EXPECT_EQ(task("root").at(place(0)).spawn([&] { return sum(sum, depth, 0); }).get(), 1 << depth);
}

TEST_P(PlaceTest, recursion_inside_a_place_by_futures) {
  const auto fib = [&](auto&& self, const int n) -> int {
    look(1);
    if (n < 2) return n;
    auto left = task("fib").spawn([&self, n] { return self(self, n - 1); });
    const int right = self(self, n - 2);
    const int sum = left.get() + right;
    look(1);
    return sum;
  };
  EXPECT_EQ(task("root").at(place(1)).spawn([&] { return fib(fib, 12); }).get(), 144);
}

TEST_P(PlaceTest, accesses_order_tasks_of_different_places) {
  int value = 0;
  for (int step = 0; step < scaled(200); ++step) {
    task("step").at(place(step % 2)).inout(value).launch([&, step] {
      look(step % 2);
      EXPECT_EQ(value, step);
      ++value;
    });
  }
  taskwait();
  EXPECT_EQ(value, scaled(200));
}

TEST_P(PlaceTest, tied_urgent_and_deferred_tasks_stay_there_too) {
  std::atomic<int> ran{0};
  finish([&] {
    for (int number = 0; number < scaled(120); ++number) {
      const int at = number % 2;
      auto described = task("some").at(place(at)).priority(number % 3 - 1);
      if (number % 5 == 0) described = described.tied();
      described.launch([&, at] {
        look(at);
        yield();
        look(at);
        auto inner = task("inner").priority(1).spawn([&, at] { look(at); });
        yield();
        inner.wait();
        look(at);
        ran.fetch_add(1);
      });
    }
  });
  EXPECT_EQ(ran.load(), scaled(120));
}

TEST_P(PlaceTest, an_exception_of_a_task_at_a_place_arrives) {
  auto failing = task("wrong").at(place(1)).spawn([]() -> int { throw std::runtime_error("no"); });
  EXPECT_THROW((void)failing.get(), std::runtime_error);
  EXPECT_THROW(finish([] {
    task("wrong").at(place(0)).launch([] { throw std::runtime_error("no"); });
  }), std::runtime_error);
}

TEST_P(PlaceTest, threads_that_are_no_workers_spawn_there) {
  std::atomic<int> ran{0};
  std::thread thread([&] {
    EXPECT_EQ(current_worker(), -1);
    EXPECT_EQ(current_place(), Place());
    EXPECT_EQ(local_place(), Place());
    finish([&] {
      for (int number = 0; number < 20; ++number) {
        task("foreign").at(place(number % 2)).launch([&, number] {
          look(number % 2);
          yield();
          look(number % 2);
          ran.fetch_add(1);
        });
      }
    });
  });
  Promise<void> done;
  task("joins").launch([&] {
    while (ran.load() < 20) yield();
    done.set();
  });
  done.future().get();
  thread.join();
  EXPECT_EQ(ran.load(), 20);
}

// A place whose queue never runs dry does not keep other tasks from running.
TEST_P(PlaceTest, places_and_tasks_without_one_have_their_turns) {
  for (const int first : {-1, 0, 1}) {
    for (const int second : {-1, 0, 1}) {
      if (first == second) continue;
      const auto at = [](const int index) { return index < 0 ? Place() : place(index); };
      std::atomic<bool> over{false};
      const auto again = [&](auto&& self) -> void {
        if (over.load()) return;
        task("again").launch([&self] { self(self); });
      };
      finish([&] {
        for (int copy = 0; copy < workers(); ++copy) {
          task("again").at(at(first)).launch([&] { again(again); });
        }
        task("once").at(at(second)).launch([&] { over.store(true); });
      });
      EXPECT_TRUE(over.load());
    }
  }
}

TEST_P(PlaceTest, wrong_places_are_refused) {
  EXPECT_EQ(place_count(), 2);
  EXPECT_NE(place(0), place(1));
  EXPECT_EQ(place(1), place(1));
  EXPECT_EQ(place(0).worker_count(), std::max(1, workers() / 2));
  for (const int index : {-1, 2, 1 << 20}) EXPECT_THROW((void)place(index), Error);
  const Place old = place(1);
  start(halves(workers()));
  EXPECT_NE(old, place(1));
  EXPECT_THROW((void)old.name(), Error);
  EXPECT_THROW((void)old.worker_count(), Error);
  const auto object = std::make_shared<int>(1);
  try {
    task("late").at(old).in(*object).launch([object] { ADD_FAILURE(); });
    ADD_FAILURE() << "a place of a runtime that has ended was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("place 1 belongs to a runtime that has ended"),
              std::string::npos) << error.what();
  }
  EXPECT_EQ(object.use_count(), 1);
}

TEST_P(PlaceTest, places_may_overlap_and_leave_workers_out) {
  if (workers() < 4) return;
  start("0-2/2,1/3");
  std::atomic<int> wrong{0}, ran{0};
  const auto right = [](const int at) {
    const int worker = current_worker();
    return current_place().index() == at &&
           (at == 0 ? worker <= 2 : at == 1 ? worker == 1 || worker == 2 : worker == 3);
  };
  std::mt19937 random(1);
  const auto grow = [&](auto&& self, const int depth, const int at, const unsigned draw) -> void {
    if (!right(at)) wrong.fetch_add(1);
    ran.fetch_add(1);
    if (depth == 0) return;
    finish([&] {
      for (unsigned child = 0; child < 2; ++child) {
        const int next = static_cast<int>((draw >> (2 * depth + child)) % 3);
        task("grows").at(place(next)).launch([&self, depth, next, draw] {
          self(self, depth - 1, next, draw * 2654435761u + 1);
        });
      }
      if (draw % 4 == 0) yield();
    });
    if (!right(at)) wrong.fetch_add(1);
  };
  for (int round = 0; round < scaled(10); ++round) {
    const unsigned draw = random();
    task("grows").at(place(0)).spawn([&] { grow(grow, 5, 0, draw); }).get();
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(ran.load(), scaled(10) * 63);
}

INSTANTIATE_TEST_SUITE_P(All, PlaceTest, testing::ValuesIn(every_setup()), name_of);

// The order of a schedule, and the workers, are the seed's.
TEST(ReplayTest, a_seed_gives_the_same_schedule_of_places) {
  const auto run = [](const char* const policy) {
    RuntimeOptions made = config(4, policy);
    made.places = "0-1/2-3";
    const Runtime runtime(made);
    std::vector<std::pair<int, int>> order;  // one worker runs at a time
    finish([&] {
      for (int number = 0; number < 100; ++number) {
        task("some").at(number % 3 == 2 ? Place() : place(number % 3)).launch([&, number] {
          order.emplace_back(number, current_worker());
          yield();
          order.emplace_back(number, current_worker());
        });
      }
    });
    return order;
  };
  const auto first = run("seeded:7");
  EXPECT_EQ(first, run("seeded:7"));
  EXPECT_NE(first, run("seeded:8"));
}

TEST(DivisionTest, malformed_lists_are_named) {
  for (const char* const wrong : {"x", "0-", "-1", "0,,1", "0/", "/0", "0,0", "2-1", "4", "0-4",
                                  "numa,l3", "NUMA", "0 1", "99999999999", "4096", "0-3/"}) {
    RuntimeOptions made = config(4, "");
    made.places = wrong;
    try {
      const Runtime runtime(made);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("imbrex: IMBREX_PLACES="), std::string::npos)
          << error.what();
    }
  }
}

TEST(DivisionTest, each_part_of_the_machine_is_a_place) {
  struct Case {
    const char* places;
    int workers, count;
    const char* last;
  };
  ASSERT_EQ(setenv("HWLOC_SYNTHETIC", "pack:1 numa:1 l3:1 core:2 pu:1", 1), 0);
  for (const Case& each : {Case{"numa", 2, 1, "NUMA node 0"}, Case{"package", 2, 1, "package 0"},
                           Case{"l3", 2, 1, "L3 cache 0"}, Case{"worker", 3, 3, "worker 2"},
                           Case{"worker", 1, 1, "worker 0"}, Case{"numa", 1, 1, "worker 0"},
                           Case{"1/0,2-3", 4, 2, "workers 0,2-3"},
                           Case{"0-3/4-7", 1, 2, "workers 4-7"}}) {
    RuntimeOptions made = config(each.workers, "");
    made.places = each.places;
    const Runtime runtime(made);
    EXPECT_EQ(place_count(), each.count) << each.places;
    EXPECT_EQ(place(each.count - 1).name(), each.last);
    EXPECT_EQ(task("last").at(place(each.count - 1)).spawn([] { return current_place(); }).get(),
              place(each.count - 1));
  }
  ASSERT_EQ(unsetenv("HWLOC_SYNTHETIC"), 0);
}

}  // namespace

}  // namespace imbrex::test
