// SPDX-License-Identifier: BSD-3-Clause
// The outcome of tasks that depend on a failed task.
//
// Methodology: each case runs twice, with the task that fails over before its dependents are
// spawned, and held back until they are: nothing may differ.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

struct Broken : std::runtime_error {
  Broken() : std::runtime_error("broken") {}
};

// Spawns tasks by number, and knows which of them ran, and which failed, at the end.
class Program {
 public:
  explicit Program(bool early) : early_(early) {}

  // `builder` without a body; it throws if `fails`.
  void add(TaskBuilder builder, bool fails = false) {
    const std::size_t number = futures_.size();
    futures_.push_back(builder.spawn([this, number, fails] {
      if (!early_) gate_.future().get();
      record(number);
      if (fails) throw Broken();
    }));
    if (early_) futures_.back().wait();
  }

  // "ran, failed itself; inherited": one letter for each task: r, f, or i.
  std::string end() {
    if (!early_) gate_.set();
    std::string result;
    for (std::size_t number = 0; number < futures_.size(); ++number) {
      try {
        futures_[number].get();
        result += has_run(number) ? 'r' : '?';
      } catch (const DependencyFailed& error) {
        result += has_run(number) ? '!' : 'i';
        EXPECT_THROW(std::rethrow_exception(error.cause()), Broken);
      } catch (const Broken&) {
        result += 'f';
      }
    }
    return result;
  }

 private:
  void record(std::size_t number) {
    const std::lock_guard lock(mutex_);
    ran_.insert(number);
  }
  bool has_run(std::size_t number) {
    const std::lock_guard lock(mutex_);  // others may still run
    return ran_.contains(number);
  }

  const bool early_;
  Promise<void> gate_;
  std::mutex mutex_;  // guards ran_
  std::set<std::size_t> ran_;
  std::vector<Future<void>> futures_;
};

class FailureTest : public OnRuntime {
 protected:
  // Runs `spawn(program)` in both ways and compares the outcome with `wanted`.
  template <class F>
  void expect(const std::string& wanted, F&& spawn) {
    for (const bool early : {true, false}) {
      Program program(early);
      spawn(program);
      EXPECT_EQ(program.end(), wanted) << (early ? "over before the spawn" : "held back");
    }
  }
  // Elements that leave nothing behind.
  using Array = int[16];
  template <class F>
  void expect_of_ranges(const std::string& wanted, F&& spawn) {
    Array a = {};
    expect(wanted, [&](Program& program) {
      task("overwrite").out(range(a)).launch([] {});
      taskwait();
      spawn(program, a);
    });
    task("overwrite").out(range(a)).launch([] {});
    taskwait();
  }
};

TEST_P(FailureTest, readers_and_those_that_update_inherit_and_pass_it_on) {
  int x = 0;
  int y = 0;
  int z = 0;
  expect("fiiiiir", [&](Program& program) {
    program.add(task("load").out(x), true);
    program.add(task("read").in(x).out(y));
    program.add(task("next").in(y).out(z));
    program.add(task("update").inout(x));
    program.add(task("exclusive").mutexinoutset(x));
    program.add(task("last").in(z));
    int other = 0;
    program.add(task("apart").inout(other));
  });
}

TEST_P(FailureTest, a_task_that_only_writes_runs_and_clears_the_failure) {
  int x = 0;
  int y = 0;
  expect("frrfir", [&](Program& program) {
    program.add(task("load").out(x), true);
    program.add(task("overwrite").out(x));
    program.add(task("read").in(x));
    program.add(task("load again").inout(x), true);
    program.add(task("copy").in(x).out(y));
    program.add(task("overwrite again").out(x, y));
  });
}

TEST_P(FailureTest, a_task_that_did_not_run_has_not_written_what_it_names_as_out) {
  int x = 0;
  int y = 1;
  expect("fiir", [&](Program& program) {
    program.add(task("load").out(x), true);
    program.add(task("derive").in(x).out(y));
    program.add(task("use").in(y));
    program.add(task("overwrite").out(y));
  });
}

TEST_P(FailureTest, clean_up_runs_and_what_it_writes_is_written) {
  int x = 0;
  expect("frirr", [&](Program& program) {
    program.add(task("load").out(x), true);
    program.add(task("look").in(x).run_after_failure());
    program.add(task("update").inout(x));
    program.add(task("clean up").inout(x).run_after_failure());
    program.add(task("read").in(x));
  });
}

TEST_P(FailureTest, only_addresses_that_it_read_from_the_one_that_failed_count) {
  int x = 0;
  int y = 0;
  expect("frr", [&](Program& program) {
    program.add(task("load").out(x).in(y), true);
    program.add(task("overwrite").out(x));
    program.add(task("follows both").in(x).inout(y));  // the first as a reader only
  });
}

TEST_P(FailureTest, a_failure_survives_a_wait_and_ends_with_the_finish_that_rethrows_it) {
  int x = 0;
  auto load = task("load").out(x).spawn([] { throw Broken(); });
  taskwait();
  auto read = task("read").in(x).spawn([] {});
  taskwait();
  EXPECT_THROW(read.get(), DependencyFailed);
  std::deque<int> many(2000);
  for (int& one : many) task("other").inout(one).launch([] {});  // the table grows
  taskwait();
  auto update = task("update").inout(x).spawn([] {});
  EXPECT_THROW(update.get(), DependencyFailed);
  EXPECT_THROW(load.get(), Broken);
  task("overwrite").out(x).launch([] {});

  bool ran = false;
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      finish([&] {
        task("load").inout(x).launch([attempt] {
          if (attempt < 2) throw Broken();
        });
        task("use").in(x).launch([&ran] { ran = true; });
      });
      EXPECT_EQ(attempt, 2);
    } catch (const Broken&) {
      EXPECT_FALSE(ran);  // and the next attempt may begin anew
    }
  }
  EXPECT_TRUE(ran);
}

TEST_P(FailureTest, a_finish_keeps_failures_that_are_older_than_it) {
  int x = 0;
  auto load = task("load").out(x).spawn([] { throw Broken(); });
  auto clean_up = task("clean up").inoutset(x).run_after_failure().spawn([] {});
  EXPECT_THROW(finish([&x] {
                 for (int i = 0; i < 3; ++i) task("neighbour").inoutset(x).launch([] {});
                 taskwait();  // the table is swept
               }),
               DependencyFailed);
  auto last = task("last neighbour").inoutset(x).spawn([] {});
  EXPECT_THROW(last.get(), DependencyFailed);
  EXPECT_THROW(load.get(), Broken);
  clean_up.get();
}

// Scopes of one loop have one address, and are different scopes.
TEST_P(FailureTest, a_finish_keeps_the_cleanup_of_an_earlier_finish) {
  int x = 0;
  auto load = task("load").out(x).spawn([] { throw Broken(); });
  for (const bool fails : {false, true}) {
    try {
      finish([&x, fails] {
        if (fails) task("fails").launch([] { throw Broken(); });
        if (!fails) task("clean up").inoutset(x).run_after_failure().launch([] {});
      });
      EXPECT_FALSE(fails);
    } catch (const Broken&) {
      EXPECT_TRUE(fails);
    }
  }
  auto last = task("last neighbour").inoutset(x).spawn([] {});
  EXPECT_THROW(last.get(), DependencyFailed);
  EXPECT_THROW(load.get(), Broken);
}

TEST_P(FailureTest, children_of_an_ended_finish_belong_to_the_finish_around_it) {
  for (const bool within : {false, true}) {
    int x = 0;
    auto load = task("load").out(x).spawn([] { throw Broken(); });
    const auto clean_up = [&x] {
      task("clean up").inoutset(x).run_after_failure().launch([] {});
    };
    EXPECT_THROW(finish([&clean_up, within] {
                   if (within) finish(clean_up);
                   if (!within) clean_up();
                   task("fails").launch([] { throw Broken(); });
                 }),
                 Broken);
    bool ran = false;  // in a set of its own, behind the clean one
    task("next set").inoutset(x).spawn([&ran] { ran = true; }).get();
    EXPECT_TRUE(ran);
    EXPECT_THROW(load.get(), Broken);
  }
}

TEST_P(FailureTest, a_set_that_was_read_is_over_also_when_its_reader_has_left) {
  for (const bool waits : {false, true}) {
    int x = 0;
    auto load = task("load").out(x).spawn([] { throw Broken(); });
    auto clean_up = task("clean up").inoutset(x).run_after_failure().spawn([] {});
    auto read = task("read").in(x).spawn([] {});
    if (waits) taskwait();
    auto next = task("next set").inoutset(x).spawn([] {});
    read.get();
    next.get();
    EXPECT_THROW(load.get(), Broken);

    auto fails = task("fails").inoutset(x).spawn([] { throw Broken(); });
    EXPECT_THROW(finish([&x] { task("read").in(x).launch([] {}); }), DependencyFailed);
    auto after = task("after the set").inoutset(x).spawn([] {});
    EXPECT_THROW(after.get(), DependencyFailed);
    EXPECT_THROW(fails.get(), Broken);
  }
}

TEST_P(FailureTest, finish_throws_the_cause_not_what_it_led_to) {
  int x = 0;
  try {
    finish([&x] {
      task("load").out(x).launch([] { throw Broken(); });
      for (int i = 0; i < 5; ++i) task("use").inout(x).launch([] {});
    });
    FAIL() << "nothing was thrown";
  } catch (const Broken& error) {
    EXPECT_STREQ(error.what(), "broken");
  }
}

TEST_P(FailureTest, more_accesses_and_predecessors_than_fit_in_place) {
  std::deque<int> parts(50);
  for (const int failing : {0, 17, 49}) {
    expect("f" + std::string(49, 'r') + "ii", [&](Program& program) {
      program.add(task("part").out(parts[failing]), true);
      for (int i = 0; i < 50; ++i) {
        if (i != failing) program.add(task("part").out(parts[i]));
      }
      TaskBuilder all = task("all");
      for (const int& part : parts) (void)all.in(part);
      program.add(all);
      TaskBuilder updates = task("updates");
      for (int& part : parts) (void)updates.inout(part);
      program.add(updates);
    });
    for (int& part : parts) task("overwrite").out(part).launch([] {});
    taskwait();
  }
}

TEST_P(FailureTest, ranges_inherit_from_all_that_they_overlap) {
  expect_of_ranges("fiiirri", [](Program& program, Array& a) {
    program.add(task("load").out(range(&a[4], 4)), true);
    program.add(task("before").in(range(&a[0], 5)));
    program.add(task("inside").inout(a[5]));
    program.add(task("behind").mutexinoutset(range(&a[7], 8)));
    program.add(task("apart").in(range(&a[0], 4)));
    program.add(task("apart").inout(range(&a[15], 1)));
    program.add(task("all").in(a).in(range(a)));
  });
  expect_of_ranges("fiir", [](Program& program, Array& a) {  // what was named by address before
    program.add(task("load").out(a[3]), true);
    program.add(task("part").in(range(&a[2], 2)));
    program.add(task("again").in(a[3]));
    program.add(task("apart").in(range(&a[4], 2)));
  });
}

TEST_P(FailureTest, a_range_is_cleaned_by_who_writes_all_of_it) {
  expect_of_ranges("frrrr", [](Program& program, Array& a) {
    program.add(task("load").out(range(&a[4], 4)), true);
    program.add(task("overwrite").out(range(&a[2], 8)));
    program.add(task("read").in(range(&a[4], 4)));
    program.add(task("read").in(a[5]));
    program.add(task("update").inout(range(a)));
  });
  expect_of_ranges("frriir", [](Program& program, Array& a) {  // a part is not enough
    program.add(task("load").out(range(&a[4], 4)), true);
    program.add(task("overwrite").out(range(&a[4], 2)));
    program.add(task("overwrite").out(range(&a[6], 2)));
    program.add(task("read").in(range(&a[4], 4)));
    program.add(task("read").in(a[7]));
    program.add(task("overwrite").out(range(&a[4], 4)));
  });
}

TEST_P(FailureTest, readers_of_ranges_pass_on_only_what_was_not_written) {
  expect_of_ranges("fiirrir", [](Program& program, Array& a) {
    program.add(task("load").out(range(&a[4], 4)), true);
    program.add(task("read").in(range(&a[0], 8)));
    program.add(task("read").in(range(&a[2], 8)));
    program.add(task("apart").inout(range(&a[0], 4)));
    program.add(task("apart").inout(range(&a[8], 4)));
    program.add(task("update").inout(range(&a[4], 4)));
    program.add(task("overwrite").out(range(&a[4], 4)));
  });
  expect_of_ranges("rfrr", [](Program& program, Array& a) {
    program.add(task("write").out(range(a)));
    program.add(task("read").in(range(&a[0], 8)), true);
    program.add(task("update").inout(range(&a[4], 8)));
    program.add(task("read again").in(range(a)));
  });
}

TEST_P(FailureTest, neighbours_of_a_set_of_ranges_do_not_inherit_from_each_other) {
  expect_of_ranges("frrii", [](Program& program, Array& a) {
    program.add(task("first").inoutset(range(&a[0], 8)), true);
    program.add(task("second").inoutset(range(&a[0], 8)));
    program.add(task("third").inoutset(range(&a[4], 8)));
    program.add(task("read").in(range(&a[6], 4)));
    program.add(task("next set").inoutset(range(&a[6], 4)).inout(a[15]).in(a[7]));
  });
  // Mutexes with other bounds have an order.
  expect_of_ranges("frii", [](Program& program, Array& a) {
    program.add(task("first").mutexinoutset(range(&a[0], 8)), true);
    program.add(task("second").mutexinoutset(range(&a[0], 8)));
    program.add(task("other").mutexinoutset(range(&a[4], 8)));
    program.add(task("read").in(range(&a[8], 4)));
  });
  // A reader between ends a set, gone or not.
  expect_of_ranges("fiii", [](Program& program, Array& a) {
    program.add(task("first").inoutset(range(&a[0], 8)), true);
    program.add(task("read").in(range(&a[0], 8)));
    program.add(task("second").inoutset(range(&a[0], 8)));
    program.add(task("third").inoutset(range(&a[0], 8)));
  });
}

TEST_P(FailureTest, ranges_that_were_released_early_have_not_failed) {
  for (const bool early : {true, false}) {
    int a[16] = {};
    Promise<void> gate;
    auto failing = task("failing").out(range(&a[0], 4), range(&a[8], 4)).spawn([&] {
      a[0] = 1;
      release(range(&a[0], 4));
      if (!early) gate.future().get();
      throw Broken();
    });
    if (early) failing.wait();
    auto reads = task("reads").in(range(&a[0], 8)).spawn([&a] { return a[0]; });
    auto both = task("reads both").in(range(a)).spawn([] {});
    EXPECT_EQ(reads.get(), 1);
    if (!early) gate.set();
    EXPECT_THROW(failing.get(), Broken);
    EXPECT_THROW(both.get(), DependencyFailed);
    auto again = task("again").in(range(&a[2], 6)).spawn([&a] { return a[0]; });
    EXPECT_EQ(again.get(), 1);
  }
}

TEST_P(FailureTest, the_failure_of_a_range_survives_a_wait_and_ends_with_its_finish) {
  std::vector<int> a(2000);
  auto load = task("load").out(range(&a[10], 10)).spawn([] { throw Broken(); });
  taskwait();
  for (std::size_t i = 0; i + 3 < a.size(); i += 3) {  // the tree grows, and is swept
    if (i < 8 || i > 20) task("other").inout(range(&a[i], 2)).launch([] {});
  }
  taskwait();
  auto read = task("read").in(range(&a[15], 10)).spawn([] {});
  EXPECT_THROW(read.get(), DependencyFailed);
  EXPECT_THROW(load.get(), Broken);
  task("overwrite").out(range(a)).launch([] {});

  bool ran = false;
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      finish([&] {
        task("load").inout(range(&a[0], 8)).launch([attempt] {
          if (attempt < 2) throw Broken();
        });
        task("use").in(range(&a[4], 8)).launch([&ran] { ran = true; });
      });
      EXPECT_EQ(attempt, 2);
    } catch (const Broken&) {
      EXPECT_FALSE(ran);
    }
  }
  EXPECT_TRUE(ran);
}

// Methodology: random programs of ranges and objects, in which some tasks fail, clean up, or
// release an access. They must end as a model says that knows no time: marks on intervals, made by
// who fails, taken by who writes all of one. Programs with sets are only compared with themselves.
class RandomFailures {
 public:
  RandomFailures(const unsigned seed, const bool sets) : random_(seed), sets_(sets) {
    for (int i = 0; i < 25; ++i) tasks_.push_back(draw());
  }
  enum class When { early, held_back, any };
  std::string run(const When when) {
    int a[size] = {};
    Promise<void> gate;
    std::vector<Future<void>> futures;
    for (const Task& one : tasks_) {
      TaskBuilder builder = task("one");
      for (const Named& named : one.named) declare(builder, named, a);
      if (one.cleans) (void)builder.run_after_failure();
      futures.push_back(builder.spawn([&a, &gate, &one, when] {
        if (one.releases) release(range(&a[one.named[0].begin], one.named[0].count()));
        if (when == When::held_back) gate.future().get();
        if (one.fails) throw Broken();
      }));
      if (when == When::early) futures.back().wait();
    }
    gate.set();
    std::string result;
    for (Future<void>& future : futures) {
      try {
        future.get();
        result += 'r';
      } catch (const DependencyFailed&) {
        result += 'i';
      } catch (const Broken&) {
        result += 'f';
      }
    }
    task("overwrite").out(range(a)).launch([] {});
    taskwait();
    return result;
  }
  std::string expected() const {
    std::string result;
    std::vector<Named> marks;
    for (const Task& one : tasks_) {
      bool inherits = false;
      for (const Named& named : one.named) {
        for (const Named& mark : marks) {
          inherits = inherits || (named.kind != 1 && named.overlaps(mark));
        }
      }
      for (const Named& named : one.named) {
        if (named.kind == 0) continue;
        std::erase_if(marks, [&](const Named& mark) {
          if (named.begin == mark.begin && named.end == mark.end) return true;
          const bool own = std::ranges::any_of(one.named, [&mark](const Named& other) {
            return other.begin == mark.begin && other.end == mark.end;
          });
          return !own && named.begin <= mark.begin && mark.end <= named.end;
        });
      }
      const bool runs = !inherits || one.cleans;
      result += !runs ? 'i' : one.fails ? 'f' : 'r';
      if (result.back() == 'r') continue;
      for (const Named& named : one.named) {
        const bool released = runs && one.releases && &named == &one.named[0];
        if (named.kind != 0 && !released) marks.push_back(named);
      }
    }
    return result;
  }

 private:
  static constexpr std::size_t size = 12;
  struct Named {
    std::size_t begin, end;
    int kind;
    [[nodiscard]] std::size_t count() const { return end - begin; }
    [[nodiscard]] bool overlaps(const Named& other) const {
      return begin < other.end && other.begin < end;
    }
  };
  struct Task {
    std::vector<Named> named;
    bool fails, cleans, releases;
  };
  Task draw() {
    Task made{{}, random_() % 6 == 0, random_() % 5 == 0, random_() % 5 == 0};
    for (std::size_t count = 1 + random_() % 3; count > 0; --count) {
      const std::size_t begin = random_() % size;
      const std::size_t end = begin + 1 + random_() % std::min<std::size_t>(5, size - begin);
      const bool again = std::ranges::any_of(made.named, [&](const Named& other) {
        return other.begin == begin && other.end == end;
      });
      if (!again) made.named.push_back({begin, end, static_cast<int>(random_() % (sets_ ? 5 : 3))});
    }
    return made;
  }
  static void declare(TaskBuilder& builder, const Named& named, int* const a) {
    const auto object = range(&a[named.begin], named.count());
    switch (named.kind) {
      case 0: (void)builder.in(object); return;
      case 1: (void)builder.out(object); return;
      case 2: (void)builder.inout(object); return;
      case 3: (void)builder.mutexinoutset(object); return;
      default: (void)builder.inoutset(object);
    }
  }

  std::mt19937 random_;
  bool sets_;
  std::vector<Task> tasks_;
};

TEST_P(FailureTest, random_programs_of_ranges_end_as_a_model_says_at_any_time) {
  using When = RandomFailures::When;
  for (unsigned seed = 0; seed < static_cast<unsigned>(scaled(60)); ++seed) {
    RandomFailures program(seed, false);
    const std::string expected = program.expected();
    for (const When when : {When::early, When::held_back, When::any}) {
      ASSERT_EQ(program.run(when), expected) << "seed " << seed;
    }
    RandomFailures with_sets(seed, true);
    const std::string early = with_sets.run(When::early);
    ASSERT_EQ(with_sets.run(When::held_back), early) << "seed " << seed;
    ASSERT_EQ(with_sets.run(When::any), early) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FailureTest, testing::ValuesIn(every_setup()), name_of);

}  // namespace
}  // namespace imbrex::test
