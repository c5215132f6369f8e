// SPDX-License-Identifier: BSD-3-Clause
// The graph logic without threads: tasks are made by hand, "run" by completing them in any order.
#include "task/depend.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "imbrex/error.hpp"
#include "task/scope.hpp"

namespace imbrex::task {
namespace {

using Kind = AccessKind;

// A parent, its table, and its children by number.
class Graph {
 public:
  ~Graph() {
    Outcome outcome;
    table_.clear(outcome);
    take(outcome);
    for (const std::unique_ptr<Child>& child : children_) {  // those that never ran
      if (child->task.references.load() != 0) destroy_accesses(child->task, cache_);
    }
  }

  // Spawns the next child; its number.
  int spawn(std::vector<AccessSpec> specs) {
    const int number = static_cast<int>(children_.size());
    Child& child = *children_.emplace_back(std::make_unique<Child>());
    Task& task = child.task;
    task.references.store(1);
    task.kind = detail::CompletionKind::task;
    task.state.store(State::created);
    task.id = static_cast<std::uint64_t>(number) + 1;
    task.name = "child";
    task.scope = &scope_;
    child.block = std::make_unique<AccessBlock[]>(
        AccessBlock::bytes(specs.size()) / sizeof(AccessBlock));
    build_accesses(task, child.block.get(), specs);
    scope_.count_spawned();
    Outcome outcome;
    if (table_.link(task, cache_, outcome)) make_ready(task, outcome.ready);
    take(outcome);
    return number;
  }

  void start(const int number) {
    ready_.erase(number);
    change_state(children_[number]->task, State::created, State::running);
  }
  void complete(const int number) {
    if (ready_.count(number) != 0) start(number);
    Outcome outcome;
    Tally tally;
    task::complete(children_[number]->task, tally, outcome);
    flush(tally, outcome);
    take(outcome);
  }
  bool release(const int number, const void* address) {
    Outcome outcome;
    const bool found = release_access(children_[number]->task, address, outcome);
    take(outcome);
    return found;
  }
  [[nodiscard]] const std::set<int>& ready() const { return ready_; }
  [[nodiscard]] bool dead(const int number) const {
    return children_[number]->task.references.load() == 0;
  }
  [[nodiscard]] std::size_t size() const { return children_.size(); }

 private:
  struct Child {
    Task task{};
    std::unique_ptr<AccessBlock[]> block;
  };
  void take(Outcome& outcome) {
    while (Task* const task = outcome.ready.pop()) ready_.insert(static_cast<int>(task->id) - 1);
    while (Task* const task = outcome.dead.pop()) destroy_accesses(*task, cache_);
  }

  base::SlabPool pool_;
  base::SlabCache cache_{pool_};
  Scope scope_;
  DependTable table_;
  std::deque<std::unique_ptr<Child>> children_;
  std::set<int> ready_;
};

using Set = std::set<int>;
int x, y;

TEST(Depend, readers_run_together_after_the_writer_and_before_the_next) {
  Graph graph;
  graph.spawn({{&x, Kind::out}});
  graph.spawn({{&x, Kind::in}});
  graph.spawn({{&x, Kind::in}});
  graph.spawn({{&x, Kind::inout}});
  EXPECT_EQ(graph.ready(), Set({0}));
  graph.complete(0);
  EXPECT_EQ(graph.ready(), Set({1, 2}));
  graph.complete(2);
  EXPECT_EQ(graph.ready(), Set({1}));
  graph.complete(1);
  EXPECT_EQ(graph.ready(), Set({3}));
}

TEST(Depend, an_inoutset_runs_together_and_what_follows_waits_for_all_of_it) {
  Graph graph;
  graph.spawn({{&x, Kind::in}});
  graph.spawn({{&x, Kind::inoutset}});
  graph.spawn({{&x, Kind::inoutset}});
  graph.spawn({{&x, Kind::in}});
  EXPECT_EQ(graph.ready(), Set({0}));
  graph.complete(0);
  EXPECT_EQ(graph.ready(), Set({1, 2}));
  graph.complete(1);
  EXPECT_EQ(graph.ready(), Set({2}));
  graph.complete(2);
  EXPECT_EQ(graph.ready(), Set({3}));
}

TEST(Depend, a_mutexinoutset_runs_one_at_a_time_in_the_order_of_asking) {
  Graph graph;
  for (int child = 0; child < 3; ++child) graph.spawn({{&x, Kind::mutexinoutset}});
  EXPECT_EQ(graph.ready(), Set({0}));
  graph.complete(0);
  EXPECT_EQ(graph.ready(), Set({1}));
  graph.complete(1);
  EXPECT_EQ(graph.ready(), Set({2}));
}

TEST(Depend, an_access_to_everything_follows_all_before_and_is_followed_by_all_after) {
  Graph graph;
  graph.spawn({{&x, Kind::in}});
  graph.spawn({{&y, Kind::mutexinoutset}});
  graph.spawn({{nullptr, Kind::everything}});
  graph.spawn({{&x, Kind::in}});
  graph.spawn({{&y, Kind::mutexinoutset}});
  graph.spawn({{nullptr, Kind::everything}});
  EXPECT_EQ(graph.ready(), Set({0, 1}));
  graph.complete(1);
  EXPECT_EQ(graph.ready(), Set({0}));
  graph.complete(0);
  EXPECT_EQ(graph.ready(), Set({2}));
  graph.complete(2);
  EXPECT_EQ(graph.ready(), Set({3, 4}));
  graph.complete(3);
  graph.complete(4);
  EXPECT_EQ(graph.ready(), Set({5}));
  graph.complete(5);
  graph.spawn({{&x, Kind::in}});
  EXPECT_EQ(graph.ready(), Set({6})) << "nothing to wait for any more";
}

TEST(Depend, two_mutexes_named_in_opposite_order_cannot_block_each_other) {
  Graph graph;
  graph.spawn({{&x, Kind::mutexinoutset}, {&y, Kind::mutexinoutset}});
  graph.spawn({{&y, Kind::mutexinoutset}, {&x, Kind::mutexinoutset}});
  EXPECT_EQ(graph.ready(), Set({0}));
  graph.complete(0);
  EXPECT_EQ(graph.ready(), Set({1}));
}

TEST(Depend, an_access_released_early_frees_only_who_waits_for_it_alone) {
  Graph graph;
  graph.spawn({{&x, Kind::out}, {&y, Kind::out}});
  graph.spawn({{&x, Kind::in}});
  graph.spawn({{&x, Kind::in}, {&y, Kind::in}});
  graph.start(0);
  EXPECT_TRUE(graph.release(0, &x));
  EXPECT_EQ(graph.ready(), Set({1}));
  graph.spawn({{&x, Kind::in}});  // created afterwards: nothing to wait for
  EXPECT_EQ(graph.ready(), Set({1, 3}));
  EXPECT_TRUE(graph.release(0, &y));
  EXPECT_EQ(graph.ready(), Set({1, 2, 3}));
  int other;
  EXPECT_FALSE(graph.release(0, &other));
}

TEST(Depend, one_object_with_two_kinds_is_refused_by_name) {
  const AccessSpec specs[] = {{&x, Kind::in}, {&y, Kind::in}, {&x, Kind::out}};
  try {
    check_accesses("halo", specs);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"halo\""), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("as in and as out"), std::string::npos);
  }
}

TEST(Depend, complete_tasks_leave_the_table_though_nobody_writes_the_address_again) {
  Graph graph;
  for (int child = 0; child < 1000; ++child) {
    graph.spawn({{&x, Kind::in}});
    graph.complete(child);
  }
  int kept = 0;
  for (int child = 0; child < 1000; ++child) kept += graph.dead(child) ? 0 : 1;
  EXPECT_LE(kept, 32);
}

// ---- against a sequential model --------------------------------------------------------------

struct Model {
  std::vector<std::vector<AccessSpec>> tasks;

  static bool ordered(const Kind first, const Kind second) {
    if (first != second || first == Kind::everything) return true;
    return first == Kind::out || first == Kind::inout;
  }
  // Must `later` wait for `earlier`? Directly: neighbours of one set kind need no order only if
  // nothing of another kind stands between them.
  [[nodiscard]] bool must_wait(const std::size_t earlier, const std::size_t later) const {
    for (const AccessSpec& first : tasks[earlier]) {
      for (const AccessSpec& second : tasks[later]) {
        const bool alike = first.address == second.address;
        if (!alike && first.kind != Kind::everything && second.kind != Kind::everything) continue;
        if (ordered(first.kind, second.kind)) return true;
        if (first.kind == Kind::in) continue;
        for (std::size_t between = earlier + 1; between < later; ++between) {
          for (const AccessSpec& other : tasks[between]) {
            if (other.kind == Kind::everything) return true;
            if (other.address == first.address && other.kind != first.kind) return true;
          }
        }
      }
    }
    return false;
  }
  [[nodiscard]] bool excludes(const std::size_t a, const std::size_t b) const {
    for (const AccessSpec& first : tasks[a]) {
      for (const AccessSpec& second : tasks[b]) {
        if (first.address == second.address && first.kind == Kind::mutexinoutset &&
            second.kind == Kind::mutexinoutset) {
          return true;
        }
      }
    }
    return false;
  }
};

std::vector<AccessSpec> random_accesses(std::mt19937& random, const std::vector<int>& objects) {
  constexpr Kind kinds[] = {Kind::in, Kind::in, Kind::out, Kind::inout, Kind::mutexinoutset,
                            Kind::inoutset};
  if (random() % 10 == 0) return {{nullptr, Kind::everything}};
  std::vector<AccessSpec> specs;
  for (const int& object : objects) {
    if (random() % 3 == 0) specs.push_back({&object, kinds[random() % 6]});
  }
  return specs;
}

// Methodology: random graphs; spawns, starts and completions are interleaved at random. At each
// start every task that the model orders before must be complete and none that excludes it may
// run; and in the end everything has run, so nothing was forgotten.
TEST(Depend, orders_random_graphs_as_a_sequential_model_does) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::vector<int> objects(1 + random() % 4);
    Graph graph;
    Model model;
    std::set<int> running, complete;
    const std::size_t count = 5 + random() % 40;
    while (complete.size() < count) {
      const unsigned choice = random() % 3;
      if (choice == 0 && model.tasks.size() < count) {
        std::vector<AccessSpec> specs = random_accesses(random, objects);
        if (specs.empty()) specs.push_back({&objects[0], Kind::in});
        model.tasks.push_back(specs);
        graph.spawn(specs);
      } else if (choice == 1 && !graph.ready().empty()) {
        const int chosen = *std::next(graph.ready().begin(),
                                      static_cast<long>(random() % graph.ready().size()));
        for (int earlier = 0; earlier < chosen; ++earlier) {
          if (complete.count(earlier) != 0) continue;
          ASSERT_FALSE(model.must_wait(earlier, chosen)) << earlier << " before " << chosen;
        }
        for (const int other : running) ASSERT_FALSE(model.excludes(other, chosen));
        graph.start(chosen);
        running.insert(chosen);
      } else if (choice == 2 && !running.empty()) {
        const int chosen =
            *std::next(running.begin(), static_cast<long>(random() % running.size()));
        running.erase(chosen);
        complete.insert(chosen);
        graph.complete(chosen);
      } else {
        ASSERT_FALSE(model.tasks.size() == count && graph.ready().empty() && running.empty())
            << "nothing can run, " << complete.size() << " of " << count << " complete";
      }
    }
  }
}

}  // namespace
}  // namespace imbrex::task
