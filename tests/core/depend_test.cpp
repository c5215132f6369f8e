// SPDX-License-Identifier: BSD-3-Clause
// Dependencies through the public interface: which kinds of access order two siblings, which
// overlap, which exclude each other; futures as dependencies; what is refused; memory.
#include <atomic>
#include <deque>
#include <memory>
#include <sstream>
#include <string>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class DependTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, DependTest, testing::ValuesIn(every_setup()), name_of);

class DependMemoryTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, DependMemoryTest,
                         testing::ValuesIn(setups({1, 2, 8},
                                                  {"", "steal", "fifo", "priority", "sa", "ga"})),
                         name_of);

enum class Kind { in, out, inout, mutexinoutset, inoutset };
constexpr Kind every_kind[] = {Kind::in, Kind::out, Kind::inout, Kind::mutexinoutset,
                               Kind::inoutset};

const char* text_of(Kind kind) {
  constexpr const char* texts[] = {"in", "out", "inout", "mutexinoutset", "inoutset"};
  return texts[static_cast<int>(kind)];
}

template <class T>
TaskBuilder& add(TaskBuilder& builder, Kind kind, T& object) {
  switch (kind) {
    case Kind::in: return builder.in(object);
    case Kind::out: return builder.out(object);
    case Kind::inout: return builder.inout(object);
    case Kind::mutexinoutset: return builder.mutexinoutset(object);
    case Kind::inoutset: return builder.inoutset(object);
  }
  throw std::logic_error("no such kind");
}

template <class F>
auto spawn(const char* name, Kind kind, int& object, F&& body) {
  TaskBuilder builder = task(name);
  return add(builder, kind, object).spawn(std::forward<F>(body));
}

// Returns whether OpenMP lets two siblings that name one object overlap.
bool overlap(Kind first, Kind second) {
  return first == second && (first == Kind::in || first == Kind::inoutset);
}
bool exclude(Kind first, Kind second) {
  return first == second && first == Kind::mutexinoutset;
}

TEST_P(DependTest, conflicting_kinds_run_in_program_order) {
  for (const Kind first : every_kind) {
    for (const Kind second : every_kind) {
      if (overlap(first, second) || exclude(first, second)) continue;
      SCOPED_TRACE(std::string(text_of(first)) + " before " + text_of(second));
      Promise<void> gate;
      int x = 0;
      std::atomic<bool> first_done = false;
      std::atomic<bool> second_ran = false;
      auto one = spawn("one", first, x, [&] {
        gate.future().get();
        first_done = true;
      });
      auto two = spawn("two", second, x, [&] {
        EXPECT_TRUE(first_done.load());
        second_ran = true;
      });
      let_others_run();
      EXPECT_FALSE(second_ran.load());
      gate.set();
      two.get();
      one.get();
    }
  }
}

TEST_P(DependTest, readers_overlap_and_so_do_the_tasks_of_an_inoutset) {
  for (const Kind kind : {Kind::in, Kind::inoutset}) {
    SCOPED_TRACE(text_of(kind));
    Promise<void> first_waits;
    Promise<void> second_waits;
    int x = 0;
    // Each waits for the other: they complete only if both are started.
    auto one = spawn("one", kind, x, [&] {
      second_waits.set();
      first_waits.future().get();
    });
    auto two = spawn("two", kind, x, [&] {
      first_waits.set();
      second_waits.future().get();
    });
    one.get();
    two.get();
  }
}

TEST_P(DependTest, a_mutexinoutset_runs_one_at_a_time_also_while_suspended) {
  const int tasks = scaled(200);
  int x = 0;
  int inside = 0;  // written only by the task that holds x, so TSan checks it too
  finish([&] {
    for (int i = 0; i < tasks; ++i) {
      task("exclusive").mutexinoutset(x).launch([&] {
        EXPECT_EQ(++inside, 1);
        const int before = x;
        yield();
        x = before + 1;
        EXPECT_EQ(--inside, 0);
      });
    }
  });
  EXPECT_EQ(x, tasks);
}

TEST_P(DependTest, a_mutexinoutset_runs_in_any_order) {
  Promise<void> promise("opens the first");
  int x = 0;
  // The first of the set waits, unstarted, for what the second does.
  auto first = task("first").mutexinoutset(x).in(promise.future()).spawn([&] { x = x * 10 + 1; });
  auto second = task("second").mutexinoutset(x).spawn([&] {
    x = 2;
    promise.set();
  });
  auto reader = task("reader").in(x).spawn([&] { return x; });
  EXPECT_EQ(reader.get(), 21);
  first.get();
  second.get();
}

TEST_P(DependTest, tasks_of_several_mutexes_never_lock_each_other_out) {
  const int seats = 5;
  const int rounds = scaled(100);
  std::deque<int> forks(seats, 0);
  finish([&] {
    for (int i = 0; i < seats * rounds; ++i) {
      int& left = forks[i % seats];
      int& right = forks[(i + 1) % seats];
      TaskBuilder builder = task("philosopher");
      if (i % 2 == 0) {
        (void)builder.mutexinoutset(left, right);
      } else {
        (void)builder.mutexinoutset(right).mutexinoutset(left);
      }
      builder.launch([&left, &right] {
        ++left;
        yield();
        ++right;
      });
    }
  });
  for (const int fork : forks) EXPECT_EQ(fork, 2 * rounds);
}

TEST_P(DependTest, a_mutex_is_given_back_when_a_body_throws) {
  int x = 0;
  auto failing = task("failing").mutexinoutset(x).spawn([] { throw Error("imbrex test: fails"); });
  auto next = task("next").mutexinoutset(x).spawn([&] { return ++x; });
  EXPECT_EQ(next.get(), 1);
  EXPECT_THROW(failing.get(), Error);
}

TEST_P(DependTest, objects_are_told_apart_by_their_address) {
  std::deque<int> cells(64, 0);
  Promise<void> gate;
  std::atomic<int> ran = 0;
  auto first = task("first").inout(cells[0]).spawn([&] { gate.future().get(); });
  for (int i = 1; i < 64; ++i) {
    task("other").inout(cells[i]).launch([&] {
      if (++ran == 63) gate.set();
    });
  }
  first.get();
}

TEST_P(DependTest, one_address_with_two_kinds_is_refused_by_name_of_the_address) {
  int x = 0;
  std::ostringstream address;
  address << static_cast<void*>(&x);
  for (const Kind first : every_kind) {
    for (const Kind second : every_kind) {
      TaskBuilder builder = task("twice");
      add(add(builder, first, x), second, x);
      bool ran = false;
      if (first == second) {
        builder.spawn([&ran] { ran = true; }).get();
        EXPECT_TRUE(ran) << text_of(first) << " given twice";
        continue;
      }
      SCOPED_TRACE(std::string(text_of(first)) + " and " + text_of(second));
      try {
        builder.spawn([&ran] { ran = true; });
        ADD_FAILURE() << "not refused";
      } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find(address.str()), std::string::npos) << text;
        EXPECT_NE(text.find("twice"), std::string::npos) << "no task named: " << text;
      }
      EXPECT_FALSE(ran);
    }
  }
  EXPECT_EQ(task("next").inout(x).spawn([&] { return ++x; }).get(), 1);
}

TEST_P(DependTest, a_refused_task_leaves_the_table_as_it_was) {
  std::deque<int> cells(20, 0);
  Promise<void> gate;
  auto writer = task("writer").inout(cells[0]).spawn([&] { gate.future().get(); });
  TaskBuilder builder = task("refused");
  for (int& cell : cells) (void)builder.in(cell);
  (void)builder.out(cells[19]);
  EXPECT_THROW(builder.spawn([] {}), Error);
  // If the refused task had stayed a reader of these cells, the writers would wait for ever.
  std::atomic<int> ran = 0;
  for (int i = 1; i < 20; ++i) task("other").inout(cells[i]).launch([&] { ++ran; });
  while (ran.load() < 19) yield();
  gate.set();
  writer.get();
  EXPECT_EQ(task("last").inout(cells[0]).spawn([] { return 1; }).get(), 1);
}

TEST_P(DependTest, dependencies_hold_among_siblings_only) {
  int x = 0;
  auto parent = task("parent").inout(x).spawn([&x] {
    auto child = task("child").inout(x).spawn([&x] { return ++x; });
    auto next = task("child").inout(x).spawn([&x] { return ++x; });
    return child.get() * 10 + next.get();
  });
  EXPECT_EQ(parent.get(), 12);
}

TEST_P(DependTest, a_task_given_a_future_runs_after_it_has_completed) {
  for (int i = 0; i < 20; ++i) {
    auto number = task("number").spawn([] {
      yield();
      return 5;
    });
    Promise<int> promise;
    auto sum = task("sum").in(number, promise.future()).spawn([number, late = promise.future()] {
      EXPECT_TRUE(number.ready());
      EXPECT_TRUE(late.ready());
      return number.get() + late.get();
    });
    EXPECT_FALSE(sum.ready());
    promise.set(7);
    EXPECT_EQ(sum.get(), 12);
    EXPECT_EQ(task("late").in(number, sum, number).spawn([] { return 1; }).get(), 1);
  }
}

TEST_P(DependTest, a_failed_future_fails_its_dependents) {
  bool ran = false;
  auto failing = task("failing").spawn([]() -> int { throw Error("imbrex test: no value"); });
  auto after = task("after").in(failing).spawn([&ran] { ran = true; });
  auto third = task("third").in(after).spawn([&ran] { ran = true; });
  auto cleanup = task("cleanup").in(third).run_after_failure().spawn([] { return 3; });
  try {
    third.get();
    FAIL() << "nothing was thrown";
  } catch (const DependencyFailed& error) {
    const std::string text = error.what();
    for (const char* const part : {"task \"third\" (", "did not run", "no value",
                                   "task \"failing\" (", "depend_test.cpp:"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    EXPECT_THROW(std::rethrow_exception(error.cause()), Error);
  }
  EXPECT_THROW(after.get(), DependencyFailed);
  EXPECT_EQ(cleanup.get(), 3);
  EXPECT_FALSE(ran);
  Future<int> broken = Promise<int>().future();
  auto waits = task("waits").spawn([broken] { return broken.get(); });
  EXPECT_THROW((void)waits.get(), BrokenPromise);
  auto second = task("second").in(broken).spawn([broken] { return broken.get(); });
  EXPECT_THROW((void)second.get(), DependencyFailed);
}

TEST_P(DependTest, joint_futures_are_dependencies_too) {
  Promise<int> one;
  Promise<int> two;
  std::atomic<int> stage = 0;
  auto any = task("any").in(when_any(one.future(), two.future())).spawn([&] { ++stage; });
  auto all = task("all").in(when_all(one.future(), two.future())).spawn([&] { ++stage; });
  let_others_run();
  EXPECT_EQ(stage.load(), 0);
  two.set(1);
  any.get();
  EXPECT_FALSE(all.ready());
  one.set(1);
  all.get();
  EXPECT_EQ(stage.load(), 2);
}

TEST_P(DependTest, an_empty_future_is_refused_as_a_dependency) {
  const Future<int> empty;
  EXPECT_THROW(task("wrong").in(empty).spawn([] {}), Error);
}

TEST_P(DependTest, a_future_may_be_a_dependency_in_another_scope) {
  Promise<int> promise;
  auto number = task("number").in(promise.future()).spawn([] { return 3; });
  auto outer = task("outer").spawn([number] {
    auto inner = task("inner").in(number).spawn([number] { return number.get() + 1; });
    return inner.get();
  });
  promise.set(0);
  EXPECT_EQ(outer.get(), 4);
}

TEST_P(DependTest, a_long_chain_runs_in_order) {
  const int length = scaled(100'000);
  int x = 0;
  int wrong = 0;
  finish([&] {
    for (int i = 0; i < length; ++i) {
      task("link").inout(x).launch([&x, &wrong, i] {
        if (x != i) ++wrong;
        ++x;
      });
    }
  });
  EXPECT_EQ(x, length);
  EXPECT_EQ(wrong, 0);
}

// Bytes of descriptors mapped after `count` tasks that all read x.
std::uint64_t bytes_after_readers(int& x, int count, std::atomic<long>& sum) {
  for (int i = 0; i < count; ++i) {
    task("reader").in(x).launch([&x, &sum] { sum.fetch_add(x, std::memory_order_relaxed); });
  }
  return statistics().descriptor_bytes;
}

TEST_P(DependMemoryTest, a_million_readers_between_two_writers_do_not_grow_memory) {
  const int many = scaled(1'000'000);
  int x = 0;
  std::atomic<long> sum = 0;
  finish([&] {
    task("writer").out(x).launch([&x] { x = 1; });
    const std::uint64_t early = bytes_after_readers(x, many / 10, sum);
    const std::uint64_t late = bytes_after_readers(x, many - many / 10, sum);
    task("writer").out(x).launch([&] {
      EXPECT_EQ(sum.load(), many);
      x = 2;
    });
    EXPECT_LE(late, early + (std::uint64_t{16} << 20));
  });
  EXPECT_EQ(x, 2);
}

TEST_P(DependMemoryTest, a_million_addresses_do_not_grow_memory) {
  const int many = scaled(1'000'000);
  std::vector<char> cells(many);
  std::uint64_t early = 0;
  finish([&] {
    for (int i = 0; i < many; ++i) {
      task("cell").out(cells[i]).launch([&cells, i] { cells[i] = 1; });
      if (i == many / 10) early = statistics().descriptor_bytes;
    }
  });
  EXPECT_LE(statistics().descriptor_bytes, early + (std::uint64_t{16} << 20));
  EXPECT_EQ(std::count(cells.begin(), cells.end(), 1), many);
}

// A descriptor that malloc() gives does not count as descriptor_bytes. At most 100 tasks live at a
// time: where nothing is ready, a creator goes beyond its window.
TEST_P(DependMemoryTest, tasks_with_many_accesses_take_slots_and_use_them_again) {
  std::vector<int> cells(20);
  int runs = 0;
  const auto run_100 = [&] {
    finish([&] {
      for (int i = 0; i < 100; ++i) {
        TaskBuilder builder = task("all");
        for (int& cell : cells) (void)builder.inout(cell);
        builder.launch([&runs] { ++runs; });
      }
    });
  };
  const std::uint64_t before = statistics().descriptor_bytes;
  run_100();
  const std::uint64_t early = statistics().descriptor_bytes;
  EXPECT_GT(early, before);
  const int rounds = scaled(200);  // 30 MB, if none were used again
  for (int i = 0; i < rounds; ++i) run_100();
  const auto caches = static_cast<std::uint64_t>(GetParam().workers) << 20;  // 1 MiB each at most
  EXPECT_LE(statistics().descriptor_bytes, early + caches + (std::uint64_t{1} << 20));
  EXPECT_EQ(runs, 100 * (1 + rounds));
}

}  // namespace
}  // namespace imbrex::test
