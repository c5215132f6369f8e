// SPDX-License-Identifier: BSD-3-Clause
// The graph logic without threads: tasks are made by hand, "run" by completing them in any order.
#include "task/access/depend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/arch.hpp"
#include "imbrex/error.hpp"
#include "task/access/accesses.hpp"
#include "task/ending/complete.hpp"

namespace imbrex::task {
namespace {

using Kind = AccessKind;

// Makes a child with its accesses in `memory`, not linked.
void prepare(Task& task, std::unique_ptr<AccessBlock[]>& memory, const std::uint64_t id,
             Scope& scope, const std::vector<AccessSpec>& specs) {
  task.references.store(1);
  task.kind = detail::CompletionKind::task;
  task.state.store(State::created);
  task.id = id;
  task.name = "child";
  task.scope = &scope;
  memory = std::make_unique<AccessBlock[]>(AccessBlock::bytes(specs.size()) / sizeof(AccessBlock));
  build_accesses(task, memory.get(), specs);
  scope.count_spawned();
}

// A parent, its table, and its children by number.
class Graph {
 public:
  ~Graph() {
    Outcome outcome;
    table_.clear(outcome);
    take(outcome);
    for (const std::unique_ptr<Child>& child : children_) {  // the children that never ran
      if (child->task.references.load() != 0) destroy_accesses(child->task, cache_);
    }
  }

  // Spawns the next child; returns its number.
  int spawn(std::vector<AccessSpec> specs) {
    const int number = static_cast<int>(children_.size());
    Child& child = *children_.emplace_back(std::make_unique<Child>());
    Task& task = child.task;
    prepare(task, child.block, static_cast<std::uint64_t>(number) + 1, scope_, specs);
    Outcome outcome;
    table_.reserve(task, outcome);
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
  bool release(const int number, const void* address, const std::size_t bytes = 0) {
    Outcome outcome;
    const bool found = release_access(children_[number]->task, address, bytes, outcome);
    take(outcome);
    return found;
  }
  // Holds the access open until fire() gets the returned event; null if the access has ended.
  EventWord* hold(const int number, const void* address, const std::size_t bytes) {
    Child& child = *children_[number];
    child.family.children.owner = &child.task;
    child.task.family = &child.family;
    table_.keep_fired();
    Outcome outcome;
    if (!hold_access(child.task, address, bytes, outcome)) return nullptr;
    Held& held = child.held.emplace_back();
    held.hold.scope = &child.family.children;
    held.hold.address = address;
    held.hold.bytes = bytes;
    hold_until(child.task, held.event, held.hold, outcome);
    take(outcome);
    return &held.event;
  }
  void fire(EventWord& event) {
    Outcome outcome;
    event::fire(event, outcome);
    take(outcome);
  }
  [[nodiscard]] const std::set<int>& ready() const { return ready_; }
  [[nodiscard]] bool dead(const int number) const {
    return children_[number]->task.references.load() == 0;
  }
  [[nodiscard]] std::size_t size() const { return children_.size(); }

 private:
  struct Held {
    Hold hold;
    EventWord event;
  };
  struct Child {
    Task task{};
    std::unique_ptr<AccessBlock[]> block;
    Family family;
    std::deque<Held> held;
  };
  void take(Outcome& outcome) {
    while (Task* const task = outcome.ready.pop()) ready_.insert(static_cast<int>(task->id) - 1);
    while (Task* const task = outcome.dead.pop()) destroy_accesses(*task, cache_);
  }

  base::SlabPool pool_;
  base::SlabCache cache_{pool_};
  Scope scope_;
  DependTable table_{nullptr};
  std::deque<std::unique_ptr<Child>> children_;
  std::set<int> ready_;
};

using Set = std::set<int>;
int x, y;

TEST(Depend, a_mutexinoutset_runs_one_at_a_time_in_the_order_of_asking) {
  Graph graph;
  for (int child = 0; child < 3; ++child) graph.spawn({{&x, Kind::mutexinoutset}});
  EXPECT_EQ(graph.ready(), Set({0}));
  graph.complete(0);
  EXPECT_EQ(graph.ready(), Set({1}));
  graph.complete(1);
  EXPECT_EQ(graph.ready(), Set({2}));
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
  graph.spawn({{&x, Kind::in}});  // created afterwards, so it need not wait
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

// ---- ranges ----------------------------------------------------------------------------------

int array[64];

// `count` elements of `array` from `first` on, as two entries.
std::vector<AccessSpec> range(const int first, const int count, const Kind kind) {
  return {{&array[first], kind, 0}, {&array[first] + count, Kind::range_end}};
}
std::vector<AccessSpec> element(const int at, const Kind kind) {
  return {{&array[at], kind, sizeof(int)}};
}
std::vector<AccessSpec> operator+(std::vector<AccessSpec> first,
                                  const std::vector<AccessSpec>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(Ranges, accesses_by_address_before_the_first_range_are_found) {
  Graph graph;
  graph.spawn(element(3, Kind::out));
  graph.spawn(element(9, Kind::in));
  graph.spawn(element(40, Kind::out));
  graph.spawn({{array + 20, Kind::in, 0}, {array + 30, Kind::object_end}});  // a large object
  EXPECT_EQ(graph.ready(), Set({0, 1, 2, 3}));
  graph.spawn(range(0, 10, Kind::inout));
  graph.spawn(element(4, Kind::in));
  graph.spawn(range(29, 2, Kind::out));
  graph.spawn(range(30, 2, Kind::in));
  EXPECT_EQ(graph.ready(), Set({0, 1, 2, 3}));
  graph.complete(3);
  EXPECT_EQ(graph.ready(), Set({0, 1, 2, 6}));
  graph.complete(0);
  graph.complete(1);
  EXPECT_EQ(graph.ready(), Set({2, 4, 6}));
  graph.complete(4);
  EXPECT_EQ(graph.ready(), Set({2, 5, 6}));
  graph.complete(6);
  EXPECT_EQ(graph.ready(), Set({2, 5, 7}));
}

TEST(Ranges, a_task_that_names_a_range_and_what_lies_in_it_does_not_wait_for_itself) {
  Graph graph;
  graph.spawn(range(0, 10, Kind::in) + element(3, Kind::inout) + range(2, 4, Kind::inoutset) +
              range(0, 5, Kind::mutexinoutset) + range(0, 6, Kind::mutexinoutset));
  graph.spawn(element(9, Kind::in));
  graph.spawn(element(3, Kind::in));
  graph.spawn(range(0, 64, Kind::out) + range(8, 2, Kind::in));
  EXPECT_EQ(graph.ready(), Set({0, 1}));
  graph.complete(0);
  EXPECT_EQ(graph.ready(), Set({1, 2}));
  graph.complete(1);
  graph.complete(2);
  EXPECT_EQ(graph.ready(), Set({3}));
}

TEST(Ranges, are_released_by_the_bounds_that_were_named) {
  Graph graph;
  graph.spawn(range(0, 10, Kind::out) + range(0, 20, Kind::inout) + element(0, Kind::inout));
  graph.spawn(range(15, 2, Kind::in));
  graph.spawn(range(5, 2, Kind::in));
  graph.start(0);
  EXPECT_FALSE(graph.release(0, array, 5 * sizeof(int)));
  EXPECT_FALSE(graph.release(0, array + 5, 5 * sizeof(int)));
  EXPECT_TRUE(graph.release(0, array));
  EXPECT_EQ(graph.ready(), Set({}));
  EXPECT_TRUE(graph.release(0, array, 20 * sizeof(int)));
  EXPECT_EQ(graph.ready(), Set({1}));
  EXPECT_TRUE(graph.release(0, array, 10 * sizeof(int)));
  EXPECT_EQ(graph.ready(), Set({1, 2}));
}

TEST(Ranges, with_the_same_bounds_and_two_kinds_are_refused) {
  EXPECT_NO_THROW(check_accesses("t", range(0, 4, Kind::in) + range(0, 5, Kind::out)));
  EXPECT_NO_THROW(check_accesses("t", range(0, 4, Kind::in) + element(0, Kind::out)));
  EXPECT_NO_THROW(check_accesses("t", range(0, 4, Kind::in) + range(4, 4, Kind::out)));
  EXPECT_THROW(check_accesses("t", range(0, 4, Kind::in) + range(0, 4, Kind::out)), Error);
  EXPECT_THROW(check_accesses("t", range(0, 1, Kind::in) + element(0, Kind::out)), Error);
  std::vector<AccessSpec> many;  // many accesses are compared in another way
  for (int at = 63; at >= 0; --at) many = many + range(at, 1, Kind::in) + range(0, at, Kind::out);
  EXPECT_THROW(check_accesses("t", many), Error) << "the first element, as in and as out";
  many.clear();
  for (int at = 62; at > 1; --at) many = many + range(0, at, Kind::out) + element(at, Kind::in);
  EXPECT_NO_THROW(check_accesses("t", many));
  EXPECT_THROW(check_accesses("t", many + element(7, Kind::out)), Error);
  EXPECT_THROW(check_accesses("t", many + range(7, 1, Kind::out)), Error);
  EXPECT_THROW(check_accesses("t", many + range(0, 7, Kind::in)), Error);
}

TEST(Ranges, complete_ones_leave_the_table) {
  Graph graph;
  for (int child = 0; child < 1000; ++child) {
    graph.spawn(range(child % 60, 1 + child % 4, child % 3 == 0 ? Kind::out : Kind::in));
    graph.complete(child);
  }
  for (int child = 1000; child < 2000; ++child) {  // all in one place, overlapping the other ranges
    graph.spawn(range(0, 64, Kind::in));
    graph.complete(child);
  }
  int kept = 0;
  for (int child = 0; child < 2000; ++child) kept += graph.dead(child) ? 0 : 1;
  EXPECT_LE(kept, 300);
}

struct NamedRange {  // for the model: [begin, end) of array
  int begin, end;
  Kind kind;
  bool by_range;
  bool released = false;  // early, with its task, or by the last event that holds it
  int holds = 0;
};

[[nodiscard]] bool must_wait(const NamedRange& first, const NamedRange& second) {
  if (first.released || first.begin >= second.end || second.begin >= first.end) return false;
  if (first.kind != second.kind) return true;
  if (first.kind == Kind::in || first.kind == Kind::inoutset) return false;
  const bool same = first.begin == second.begin && first.end == second.end;
  return first.kind != Kind::mutexinoutset || !same;
}

// Draws some objects, not overlapping, and ranges that overlap them and each other; or everything.
std::vector<NamedRange> draw(std::mt19937& random, const bool ranges) {
  constexpr Kind kinds[] = {Kind::in, Kind::in, Kind::out, Kind::inout, Kind::mutexinoutset,
                            Kind::inoutset};
  if (random() % 10 == 0) return {{0, 64, Kind::everything, false}};
  std::vector<NamedRange> drawn;
  for (unsigned count = 1 + random() % 3; count > 0; --count) {
    const bool by_range = ranges && random() % 2 == 0;
    const int begin = static_cast<int>(random() % 12);
    const int end = by_range ? begin + 1 + static_cast<int>(random() % 6) : begin + 1;
    const bool again = std::ranges::any_of(drawn, [&](const NamedRange& other) {
      return other.begin == begin && other.end == end;
    });
    if (!again) drawn.push_back({begin, end, kinds[random() % 6], by_range});
  }
  return drawn;
}

std::vector<AccessSpec> specs_of(const std::vector<NamedRange>& named) {
  std::vector<AccessSpec> specs;
  for (const NamedRange& one : named) {
    if (one.kind == Kind::everything) return {{nullptr, Kind::everything}};
    specs = specs + (one.by_range ? range(one.begin, one.end - one.begin, one.kind)
                                  : element(one.begin, one.kind));
  }
  return specs;
}

// Methodology: random graphs; spawns, starts and completions are interleaved at random, with
// accesses that end early, or by events that fire later than their task ends. A task may be ready
// only if all tasks before it allow that, and only a task that it must follow, or a mutex, holds it
// back.
class RandomRanges {
 public:
  RandomRanges(const unsigned seed, const bool ranges)
      : random_(seed), count_(5 + random_() % 60), ranges_(ranges) {
    add({{0, 1, Kind::in, ranges}});  // from here on by range
  }
  void run() {
    while (complete_.size() < count_ || !pending_.empty()) {
      switch (random_() % 6) {
        case 0:
          if (named_.size() < count_) add(draw(random_, ranges_));
          break;
        case 1: start(); break;
        case 2: release(); break;
        case 3: hold(); break;
        case 4: fire(); break;
        default: end();
      }
      if (testing::Test::HasFatalFailure()) return;
      ASSERT_FALSE(named_.size() == count_ && graph_.ready().empty() && running_.empty() &&
                   pending_.empty() && complete_.size() < count_)
          << "nothing can run";
    }
  }

 private:
  void add(const std::vector<NamedRange>& named) {
    named_.push_back(named);
    graph_.spawn(specs_of(named));
    check_ready();
  }
  int pick(const std::set<int>& from) {
    return *std::next(from.begin(), static_cast<long>(random_() % from.size()));
  }
  [[nodiscard]] bool waits(const int earlier, const int later) const {
    for (const NamedRange& first : named_[earlier]) {
      for (const NamedRange& second : named_[later]) {
        if (must_wait(first, second)) return true;
      }
    }
    return false;
  }
  [[nodiscard]] static bool has_mutex(const std::vector<NamedRange>& named) {
    return std::ranges::any_of(
        named, [](const NamedRange& one) { return one.kind == Kind::mutexinoutset; });
  }
  void check_ready() {
    for (int task = 0; task < static_cast<int>(named_.size()); ++task) {
      if (running_.count(task) != 0 || complete_.count(task) != 0) continue;
      bool must = false;
      for (int earlier = 0; earlier < task; ++earlier) must = must || waits(earlier, task);
      if (graph_.ready().count(task) != 0) {
        ASSERT_FALSE(must) << "task " << task << " is ready too early";
      } else {
        ASSERT_TRUE(must || has_mutex(named_[task])) << "nothing keeps task " << task << " back";
      }
    }
  }
  void start() {
    if (graph_.ready().empty()) return;
    const int task = pick(graph_.ready());
    for (int other = 0; other < static_cast<int>(named_.size()); ++other) {
      if (running_.count(other) == 0 && complete_.count(other) == 0) continue;
      for (const NamedRange& mine : named_[task]) {
        for (const NamedRange& its : named_[other]) {
          const bool overlap = mine.begin < its.end && its.begin < mine.end;
          ASSERT_FALSE(overlap && !its.released && mine.kind == Kind::mutexinoutset &&
                       its.kind == Kind::mutexinoutset);
        }
      }
    }
    graph_.start(task);
    running_.insert(task);
  }
  void release() {
    if (running_.empty()) return;
    const int task = pick(running_);
    NamedRange& one = named_[task][random_() % named_[task].size()];
    if (one.kind == Kind::everything) return;
    one.released = one.released || one.holds == 0;
    ASSERT_TRUE(graph_.release(task, &array[one.begin], bytes_of(one)));
    check_ready();
  }
  // An object and the range of exactly its bytes are two names.
  [[nodiscard]] static std::size_t bytes_of(const NamedRange& one) {
    return one.by_range ? static_cast<std::size_t>(one.end - one.begin) * sizeof(int) : 0;
  }
  void hold() {
    if (running_.empty()) return;
    const int task = pick(running_);
    const std::size_t index = random_() % named_[task].size();
    NamedRange& one = named_[task][index];
    if (one.kind == Kind::everything) return;
    EventWord* const event = graph_.hold(task, &array[one.begin], bytes_of(one));
    ASSERT_EQ(event == nullptr, one.released);
    if (event == nullptr) return;
    ++one.holds;
    pending_.push_back({task, index, event});
    check_ready();
  }
  void fire() {
    if (pending_.empty()) return;
    std::swap(pending_[random_() % pending_.size()], pending_.back());
    const Pending fired = pending_.back();
    pending_.pop_back();
    NamedRange& one = named_[fired.task][fired.index];
    one.released = --one.holds == 0;
    graph_.fire(*fired.event);
    check_ready();
  }
  void end() {
    if (running_.empty()) return;
    const int task = pick(running_);
    running_.erase(task);
    complete_.insert(task);
    for (NamedRange& one : named_[task]) one.released = one.released || one.holds == 0;
    graph_.complete(task);
    check_ready();
  }

  struct Pending {
    int task;
    std::size_t index;  // index of its range
    EventWord* event;
  };
  std::mt19937 random_;
  std::size_t count_;
  bool ranges_;
  Graph graph_;
  std::vector<std::vector<NamedRange>> named_;
  std::vector<Pending> pending_;
  std::set<int> running_, complete_;
};

TEST(Ranges, order_random_graphs_as_a_sequential_model_does) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomRanges(seed, true).run();
    if (HasFatalFailure()) return;
  }
}

TEST(Depend, accesses_that_end_apart_order_random_graphs_as_a_sequential_model_does) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomRanges(seed, false).run();
    if (HasFatalFailure()) return;
  }
}

// Methodology: one access of a task finds an edge; a later access sweeps the last place of the
// predecessor from the table, since another thread has completed it and then drops a future of it,
// before the edge is added. AddressSanitizer reports a read of the freed task.
TEST(Depend, a_predecessor_that_ends_meanwhile_lives_until_its_edge_is_added) {
  struct Child {
    Task task{};
    std::unique_ptr<AccessBlock[]> block;
  };
  base::SlabPool pool;
  base::SlabCache cache(pool);
  Scope scope;
  DependTable table(nullptr);
  std::uint64_t id = 0;
  std::atomic<std::uint64_t> linking = 0;  // ids
  std::atomic<std::uint64_t> linked = 0;
  const auto take = [](Outcome& outcome, base::SlabCache& edges) {
    while (outcome.ready.pop() != nullptr) {
    }
    while (Task* const dead = outcome.dead.pop()) {
      destroy_accesses(*dead, edges);
      delete reinterpret_cast<Child*>(dead);
    }
  };
  const auto spawn = [&](const std::vector<AccessSpec>& specs) -> Task& {
    auto* const child = new Child;
    prepare(child->task, child->block, ++id, scope, specs);
    Outcome outcome;
    table.reserve(child->task, outcome);
    linking.store(id);
    (void)table.link(child->task, cache, outcome);
    linked.store(id);
    take(outcome, cache);
    return child->task;
  };
  const auto complete = [&](Task& task, base::SlabCache& edges) {
    change_state(task, State::created, State::running);
    Outcome outcome;
    Tally tally;
    task::complete(task, tally, outcome);
    flush(tally, outcome);
    take(outcome, edges);
  };
  std::vector<char> others(20000);
  for (int round = 0; round < 30; ++round) {
    std::vector<AccessSpec> specs;
    for (const char& other : others) specs.push_back({&other, Kind::in});
    complete(spawn(specs), cache);  // so that the table has room, and is not swept as a whole
    Task& followed = spawn({{&x, Kind::out}, {&y, Kind::in}});
    std::vector<Task*> readers;
    for (int i = 0; i < 15; ++i) readers.push_back(&spawn({{&y, Kind::in}}));
    for (Task* const reader : readers) complete(*reader, cache);
    specs.insert(specs.begin() + 10000, {&y, Kind::in});
    specs.insert(specs.begin(), {&x, Kind::out});
    add_reference(followed);  // the reference of the future
    std::thread ender([&, next = id + 1] {
      base::SlabCache own(pool);
      while (linking.load() != next) base::pause();
      for (int i = 0; i < 20 * round; ++i) base::pause();
      complete(followed, own);
      while (followed.references.load() > 1 && linked.load() != next) base::pause();
      Outcome outcome;
      lose(followed, outcome);
      take(outcome, own);
    });
    Task& last = spawn(specs);
    ender.join();
    complete(last, cache);
    Outcome outcome;
    table.clear(outcome);
    take(outcome, cache);
  }
}

}  // namespace
}  // namespace imbrex::task
