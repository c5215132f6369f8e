// SPDX-License-Identifier: BSD-3-Clause
// What the waist offers to plug-ins that bring work from elsewhere.
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <source_location>
#include <string>
#include <thread>
#include <vector>

#include "imbrex/detail/plug_ins.hpp"
#include "on_runtime.hpp"

namespace imbrex::test {

namespace {

class PlugInTest : public OnRuntime {};

detail::ScopeMemory& innermost() { return *detail::innermost_scope(); }

TEST_P(PlugInTest, a_scope_counts_what_is_left_of_it_with_all_descendants) {
  Promise<void> events[3];
  finish([&] {
    detail::ScopeMemory& scope = innermost();
    EXPECT_EQ(detail::live_in_scope(scope), 0u);
    for (Promise<void>& event : events) {
      task("parent").launch([&event] { task("child").launch([&event] { event.future().get(); }); });
    }
    task("none").spawn([] {}).get();
    taskwait();  // the parents are complete, their children are not
    EXPECT_EQ(detail::live_in_scope(scope), 3u);
    for (std::uint32_t left = 3; left != 0; --left) {
      events[left - 1].set();
      while (detail::live_in_scope(scope) != left - 1) yield();
    }
    for (int number = 0; number < scaled(300); ++number) task("many").launch([] {});
    taskwait();
    while (detail::live_in_scope(scope) != 0) yield();
  });
}

TEST_P(PlugInTest, others_count_a_scope_whose_owner_waits_for_them) {
  Promise<void> go_on, waits;
  std::atomic<detail::ScopeMemory*> scope{nullptr};
  auto owner = task("owner").spawn([&] {
    finish([&] {
      task("first").launch([&] { go_on.future().get(); });
      task("second").launch([&] { go_on.future().get(); });
      scope.store(&innermost());
      waits.future().get();  // open
    });
  });
  while (scope.load() == nullptr) yield();
  let_others_run();
  EXPECT_EQ(detail::live_in_scope(*scope.load()), 2u);
  go_on.set();
  while (detail::live_in_scope(*scope.load()) != 0) yield();
  waits.set();
  owner.get();
}

// Work that may be done elsewhere, as a plug-in would have it. Two processes in one: this one, and
// a store to which a thief takes what is ready here, and out of which a worker that has nothing to
// do brings it back, computed or not.
class Elsewhere {
 public:
  struct Item {
    Elsewhere* owner;
    int number;
    bool done_there = false;
  };

  explicit Elsewhere(const int count) : ran_(static_cast<std::size_t>(count)) {
    detail::add_poller(poller_);
  }
  ~Elsewhere() { detail::remove_poller(poller_); }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

  // Spawns a task of this test that may travel, in the order of the numbers.
  detail::Completion* spawn(const int number, const detail::TaskSpec& spec, const bool keep) {
    void* const closure = spec.accesses.empty()
                              ? detail::create(spec, ops, sizeof(Item))
                              : detail::create_with_accesses(spec, ops, sizeof(Item));
    ::new (closure) Item{this, number};
    return spec.accesses.empty() ? detail::submit(closure, keep)
                                 : detail::submit_with_accesses(closure, keep);
  }
  void spawn(const int number) {
    (void)spawn(number, {.name = "travels", .where = std::source_location::current()}, false);
  }
  // Takes up to so many; says how many.
  int take(const std::size_t most) {
    std::vector<void*> taken(most);
    outstanding_.fetch_add(1);
    const std::size_t count = detail::take_ready(kind, taken);
    const std::lock_guard guard(mutex_);
    for (std::size_t each = 0; each < count; ++each) {
      Item& item = *static_cast<Item*>(taken[each]);
      if (item.number % 2 == 0 && !item.done_there) {  // it may be here once more
        item.done_there = true;
        ran_[static_cast<std::size_t>(item.number)].fetch_add(1);
      }
      store_.push_back(taken[each]);
    }
    taken_.fetch_add(static_cast<int>(count));
    outstanding_.fetch_add(static_cast<int>(count) - 1);
    return static_cast<int>(count);
  }
  // Gives back the task that was taken first, if any.
  bool bring() noexcept {
    void* closure = nullptr;
    {
      const std::lock_guard guard(mutex_);
      if (store_.empty()) return false;
      closure = store_.front();
      store_.erase(store_.begin());
    }
    detail::give_back(closure);
    outstanding_.fetch_sub(1);
    return true;
  }
  [[nodiscard]] int taken() const { return taken_.load(); }
  [[nodiscard]] int sought() const { return sought_.load(); }
  [[nodiscard]] std::vector<int> here() const { return here_.entries(); }
  void expect_each_ran_once() const {
    for (const std::atomic<int>& count : ran_) EXPECT_EQ(count.load(), 1);
  }

 private:
  static void run(void* const closure) {
    const Item& item = *static_cast<const Item*>(closure);
    if (item.done_there) return;
    item.owner->ran_[static_cast<std::size_t>(item.number)].fetch_add(1);
    item.owner->here_.add(item.number);
  }
  static constexpr int kind_of_this_test = 0;
  static constexpr const void* kind = &kind_of_this_test;
  static constexpr detail::BodyOps ops{&run, [](void*) noexcept {}, nullptr, nullptr, kind};

  std::atomic<int> outstanding_{0};  // in the store
  detail::Poller poller_{.poll = [](void*) noexcept { return 0; },
                         .context = this,
                         .outstanding = &outstanding_,
                         .seek = [](void* const self) noexcept {
                           auto& it = *static_cast<Elsewhere*>(self);
                           it.sought_.fetch_add(1);
                           return it.bring();
                         }};
  std::mutex mutex_;
  std::vector<void*> store_;  // under the mutex
  std::vector<std::atomic<int>> ran_;
  std::atomic<int> taken_{0}, sought_{0};
  Log here_;
};

// A function that MPI calls: no task runs there.
class InCallback {
 public:
  InCallback() { detail::enter_callback("MPI_Something"); }
  ~InCallback() { detail::leave_callback(); }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
};

long fib(const int n) {
  if (n < 2) return n;
  auto first = task("fib").spawn([n] { return fib(n - 1); });
  const long second = fib(n - 2);
  return first.get() + second;
}

void spawn_in_place() {
  EXPECT_EQ(fib(9), 34);
  std::vector<int> order;
  finish([&order] {
    for (int number = 0; number < 3; ++number) {
      task("in order").out(order).launch([&order, number] { order.push_back(number); });
    }
    task("in a task").launch([&order] {
      finish([&order] { task("child").launch([&order] { order.push_back(3); }); });
      order.push_back(4);
    });
    order.push_back(5);
  });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  task("left alone").launch([&order] { order.clear(); });
  EXPECT_TRUE(order.empty());
  taskwait();
  EXPECT_THROW(finish([] { task("fails").launch([] { throw std::runtime_error("once"); }); }),
               std::runtime_error);
  EXPECT_FALSE(detail::in_task());
}

TEST_P(PlugInTest, tasks_spawned_in_a_callback_run_where_they_are_spawned) {
  std::atomic<int> below{0};
  finish([&below] {
    task("interrupted").launch([&below] {
      task("stays a child").launch([&below] { ++below; });
      {
        const InCallback here;
        spawn_in_place();
        const InCallback inside;
        spawn_in_place();
      }
      const InCallback again;
      spawn_in_place();
    });
    const InCallback in_main;
    spawn_in_place();
  });
  EXPECT_EQ(below.load(), 1);
  std::thread([] {
    const InCallback before_its_first_use;
    spawn_in_place();
  }).join();
}

TEST_P(PlugInTest, main_is_the_last_task_when_all_others_have_ended_and_no_callback_runs) {
  EXPECT_TRUE(detail::in_main());
  EXPECT_TRUE(detail::main_is_last());
  {
    const InCallback here;
    EXPECT_FALSE(detail::in_main());
    EXPECT_FALSE(detail::main_is_last());
  }
  Promise<void> go;
  finish([&go] {
    task("another").launch([&go] {
      EXPECT_FALSE(detail::in_main());
      go.future().get();
    });
    EXPECT_TRUE(detail::in_main());
    EXPECT_FALSE(detail::main_is_last());
    go.set();
  });
  EXPECT_TRUE(detail::main_is_last());
  std::thread([] { EXPECT_FALSE(detail::in_main()); }).join();
}

TEST_P(PlugInTest, calls_that_cannot_run_in_a_callback_are_refused_by_name) {
  Promise<void> never;
  Promise<int> later;
  const Future<int> value = later.future();
  const auto refused = [](const char* const what, auto call) {
    try {
      call();
      ADD_FAILURE() << what << ": not refused";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(what), std::string::npos) << text;
      EXPECT_NE(text.find("MPI_Something"), std::string::npos) << text;
    }
  };
  {
    const InCallback here;
    refused("wait for", [&never] { never.future().get(); });
    refused("wait for a future", [&value] { (void)value.get(); });
    refused("waits for a future", [&value] { task("late").in(value).launch([] {}); });
    refused("yield", [] { yield(); });
    later.set(5);
    EXPECT_EQ(value.get(), 5);
    task("in time").in(value).launch([] {});
    never.set();
    never.future().get();
  }
}

TEST_P(PlugInTest, a_worker_without_work_brings_it_from_elsewhere) {
  constexpr int count = 20;
  Elsewhere elsewhere(count);
  std::atomic<int> others{0};
  finish([&] {
    for (int number = 0; number < count; ++number) {
      elsewhere.spawn(number);
      task("stays").launch([&] { others.fetch_add(1); });
    }
    if (GetParam().workers == 1) {  // no other worker takes any
      EXPECT_EQ(elsewhere.take(7), 7);
      EXPECT_EQ(elsewhere.take(100), count - 7);
      EXPECT_EQ(elsewhere.take(1), 0);
    } else {
      (void)elsewhere.take(100);
    }
  });
  EXPECT_EQ(others.load(), count);
  elsewhere.expect_each_ran_once();
  EXPECT_GE(elsewhere.sought(), elsewhere.taken());
}

// Tasks that stay keep their order.
TEST_P(PlugInTest, the_others_run_as_if_those_had_never_been_there) {
  const std::string policy = GetParam().policy;
  // A policy that draws, or learns, does not run tasks in an equal order twice.
  if (GetParam().workers != 1 || policy.starts_with("seeded") || policy == "fa" || policy == "ga") {
    return;
  }
  const auto order = [](const bool travellers) {
    Elsewhere elsewhere(60);
    Log log;
    std::vector<int> objects(60);
    finish([&] {
      for (int number = 0; number < 60; ++number) {
        if (travellers) elsewhere.spawn(number);
        auto described = task("stays").priority(number % 7 == 0 ? number % 2 * 2 - 1 : 0);
        if (number % 3 == 0) described = described.out(objects[static_cast<std::size_t>(number)]);
        described.launch([&log, number] { log.add(number); });
      }
      if (travellers) {
        EXPECT_EQ(elsewhere.take(20), 20);
        EXPECT_EQ(elsewhere.take(60), 40);
      }
    });
    return log.entries();
  };
  EXPECT_EQ(order(true), order(false));
}

TEST_P(PlugInTest, a_task_with_accesses_travels_once_it_is_ready) {
  Elsewhere elsewhere(1);
  int object = 0;
  Promise<void> go_on;
  const detail::AccessSpec access{&object, detail::AccessKind::inout};
  finish([&] {
    task("first").inout(object).launch([&] { go_on.future().get(); });
    detail::Completion* const second =
        elsewhere.spawn(0, {.name = "second",
                            .where = std::source_location::current(),
                            .accesses = {&access, 1}}, true);
    auto third = task("third").in(object).spawn([&] { elsewhere.expect_each_ran_once(); });
    let_others_run();
    EXPECT_EQ(elsewhere.take(1), 0);  // it is not ready
    go_on.set();
    while (elsewhere.taken() == 0 && !second->event.has_fired()) {
      (void)elsewhere.take(1);
      yield();
    }
    third.wait();
    detail::release(*second);
  });
}

// Methodology: tasks of two kinds in recursion, thieves among the tasks and a thread of the
// program's own; each task must have run once, in one of the two processes.
TEST_P(PlugInTest, each_task_runs_once_whoever_takes_and_brings_back) {
  const int count = scaled(1500);
  Elsewhere elsewhere(count);
  std::atomic<int> others{0};
  std::atomic<bool> over{false};
  std::thread thief([&] {
    while (!over.load()) {
      if (elsewhere.take(3) == 0) (void)elsewhere.bring();
      std::this_thread::yield();
    }
    while (elsewhere.bring()) {}
  });
  finish([&] {
    for (int part = 0; part < 5; ++part) {
      task("spawns").launch([&, part] {
        for (int number = part * count / 5; number < (part + 1) * count / 5; ++number) {
          elsewhere.spawn(number);
          task("stays").launch([&] { others.fetch_add(1); });
          if (number % 50 == 0) yield();
        }
      });
    }
    task("steals").launch([&] {
      for (int round = 0; round < 50; ++round) {
        (void)elsewhere.take(5);
        yield();
      }
    });
  });
  over.store(true);
  thief.join();
  detail::drain();
  EXPECT_EQ(others.load(), count);
  elsewhere.expect_each_ran_once();
}

INSTANTIATE_TEST_SUITE_P(All, PlugInTest, testing::ValuesIn(every_setup()), name_of);

}  // namespace

}  // namespace imbrex::test
