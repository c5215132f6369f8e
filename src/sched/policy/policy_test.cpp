// SPDX-License-Identifier: BSD-3-Clause
// Policies without threads: what they answer to a sequence of pushes.
#include "sched/policy/policy.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tables/policies.hpp"
#include "base/topology.hpp"
#include "imbrex/error.hpp"
#include "sched/policy/stealing.hpp"
#include "task/access/accesses.hpp"
#include "task/access/depend.hpp"
#include "task/ending/complete.hpp"

namespace imbrex::sched {
namespace {

class PolicyTest : public testing::Test {
 protected:
  void use(const std::string& name, const int workers) {
    base::Neighbours near;
    for (int self = 0; self < workers; ++self) {
      near.nearest.emplace_back();
      near.domain.push_back(0);
      for (int step = 1; step < workers; ++step) {
        near.nearest[self].push_back((self + step) % workers);
      }
    }
    use(name, near);
  }
  void use(const std::string& name, const base::Neighbours& near) {
    policy_ = make_policy(name, {.workers = static_cast<int>(near.domain.size()),
                                 .nearest = near.nearest,
                                 .domain = near.domain,
                                 .wake = [](void*, int) {},
                                 .wake_context = nullptr});
  }
  void push(Task& task, const int worker) {
    policy_->push(task, {.worker = worker, .only = no_worker}, Origin::released);
  }
  Task& task(const int priority) {
    Task& made = tasks_.emplace_back();
    made.references.store(1);
    made.reach = task::Reach::flow;
    made.state.store(task::State::ready);
    made.id = tasks_.size();
    made.priority.store(priority);
    return made;
  }
  // Pushes tasks with these priorities, as worker 0; then what worker 0 pops, by id.
  std::vector<std::uint64_t> order(const std::vector<int>& priorities, const Origin origin) {
    for (const int priority : priorities) {
      policy_->push(task(priority), {.worker = 0, .only = no_worker}, origin);
    }
    return drain(0);
  }
  std::vector<std::uint64_t> drain(const int worker) {
    std::vector<std::uint64_t> ids;
    for (;;) {
      Entry next = policy_->pop(worker);
      if (!next) next = policy_->steal(worker, true);
      if (!next) return ids;
      ids.push_back(next.task->id);
    }
  }
  void push_many(const int count, const Origin origin) {
    for (int i = 0; i < count; ++i) {
      policy_->push(task(0), {.worker = 0, .only = no_worker}, origin);
    }
  }
  std::vector<std::uint64_t> pop_all(const int worker) {
    std::vector<std::uint64_t> ids;
    while (const Entry next = policy_->pop(worker)) ids.push_back(next.task->id);
    return ids;
  }
  std::unique_ptr<Policy> policy_;
  std::deque<Task> tasks_;
};
using Ids = std::vector<std::uint64_t>;

TEST_F(PolicyTest, default_runs_a_recursion_newest_first_and_graphs_oldest_first) {
  use("default", 1);
  Task* above = nullptr;
  for (int level = 0; level < 3; ++level) {
    Task& made = task(0);
    made.parent = std::exchange(above, &made);
    policy_->push(made, {.worker = 0, .only = no_worker}, Origin::forked);
  }
  EXPECT_EQ(drain(0), Ids({3, 2, 1}));
  EXPECT_EQ(order({0, 0, 0}, Origin::released), Ids({4, 5, 6}));
}

TEST_F(PolicyTest, default_runs_what_one_task_has_created_in_that_order) {
  use("default", 1);
  Task parent;
  for (const Origin origin : {Origin::forked, Origin::released, Origin::forked, Origin::released}) {
    Task& made = task(0);
    made.parent = &parent;
    policy_->push(made, {.worker = 0, .only = no_worker}, origin);
  }
  Task& child = task(0);  // of a released one that has begun: before what has not
  child.parent = &tasks_[1];
  EXPECT_EQ(policy_->pop(0).task->id, 1u);
  EXPECT_EQ(policy_->pop(0).task->id, 2u);
  policy_->push(child, {.worker = 0, .only = no_worker}, Origin::forked);
  EXPECT_EQ(drain(0), Ids({5, 3, 4}));
}

TEST_F(PolicyTest, default_runs_a_released_task_before_the_first_if_it_was_created_earlier) {
  use("default", 1);
  for (int i = 0; i < 6; ++i) (void)task(0);
  for (const std::size_t at : {3, 5, 1, 2, 4, 0}) push(tasks_[at], 0);
  EXPECT_EQ(drain(0), Ids({1, 2, 4, 6, 3, 5})) << "else by the order of release";
}

TEST_F(PolicyTest, default_goes_on_with_what_was_begun_before_it_begins_more) {
  use("default", 1);
  policy_->push(task(0), {.worker = 0, .only = no_worker}, Origin::forked);
  policy_->push(task(0), {.worker = 0, .only = no_worker}, Origin::released);
  policy_->push(task(0), {.worker = 0, .only = no_worker}, Origin::resumed);
  EXPECT_EQ(drain(0), Ids({3, 1, 2}));
}

TEST_F(PolicyTest, steal_runs_everything_newest_first) {
  use("steal", 1);
  EXPECT_EQ(order({0, 0, 0}, Origin::released), Ids({3, 2, 1}));
}

TEST_F(PolicyTest, one_thread_that_calls_for_all_workers_steals_without_waiting_for_an_answer) {
  for (const char* const name : {"default", "steal"}) {
    policy_ = make_policy(name, {.workers = 2,
                                 .nearest = {{1}, {0}},
                                 .domain = {0, 0},
                                 .wake = [](void*, int) {},
                                 .wake_context = nullptr,
                                 .one_thread = true});
    Task& first = task(0);
    Task& second = task(0);
    push(first, 0);
    push(second, 0);
    EXPECT_EQ(policy_->steal(1, false).task, &first) << name;
    EXPECT_EQ(policy_->pop(0).task, &second) << name;
    EXPECT_EQ(policy_->size(), 0) << name;
  }
}

TEST_F(PolicyTest, default_honours_priorities_above_and_below_zero) {
  use("default", 1);
  EXPECT_EQ(order({0, -5, 2, 7, 0}, Origin::released), Ids({4, 3, 1, 5, 2}));
}

TEST_F(PolicyTest, fifo_runs_what_was_created_first_whatever_its_priority) {
  use("fifo", 1);
  Task& first = task(0);
  Task& second = task(9);
  policy_->push(second, {.worker = 0, .only = no_worker}, Origin::released);
  policy_->push(first, {.worker = no_worker, .only = no_worker}, Origin::resumed);
  EXPECT_EQ(drain(0), Ids({1, 2}));
}

TEST_F(PolicyTest, priority_runs_levels_then_resumed_then_in_order_of_creation) {
  use("priority", 1);
  EXPECT_EQ(order({0, 3, 3, -1}, Origin::released), Ids({2, 3, 1, 4}));
  policy_->push(task(1), {.worker = 0, .only = no_worker}, Origin::released);
  policy_->push(task(1), {.worker = 0, .only = no_worker}, Origin::resumed);
  EXPECT_EQ(drain(0), Ids({6, 5}));
}

TEST_F(PolicyTest, equal_priorities_go_by_creation_even_when_resumed_under_those_of_the_paper) {
  for (const char* const name : {"ma1", "ma2", "ma3", "sa"}) {
    use(name, 1);
    tasks_.clear();
    EXPECT_EQ(order({0, 3, 3, -1}, Origin::released), Ids({2, 3, 1, 4})) << name;
    Task& first = task(1);
    policy_->push(task(1), {.worker = 0, .only = no_worker}, Origin::resumed);
    policy_->push(first, {.worker = 0, .only = no_worker}, Origin::released);
    EXPECT_EQ(drain(0), Ids({5, 6})) << name;
  }
}

TEST_F(PolicyTest, a_raised_task_comes_first_and_its_old_entry_cannot_be_claimed) {
  for (const char* const name : {"default", "priority", "ma1", "ma2", "ma3", "sa"}) {
    use(name, 1);
    Task& other = task(0);
    Task& low = task(0);
    policy_->push(other, {.worker = 0, .only = no_worker}, Origin::released);
    policy_->push(low, {.worker = 0, .only = no_worker}, Origin::released);
    policy_->raise(low, 5);
    const Entry first = policy_->pop(0);
    ASSERT_EQ(first.task, &low) << name;
    EXPECT_TRUE(task::claim(first));
    EXPECT_EQ(policy_->pop(0).task, &other);
    const Entry stale = policy_->pop(0);
    ASSERT_EQ(stale.task, &low);
    EXPECT_FALSE(task::claim(stale));
    low.state.store(task::State::resumable);
    EXPECT_FALSE(task::claim(stale)) << "an entry to begin may not resume";
    EXPECT_EQ(low.references.load(), 2u);  // one for each entry
  }
}

TEST_F(PolicyTest, a_thief_leaves_a_single_task_to_its_owner_unless_it_is_eager) {
  use("default", 2);
  policy_->push(task(0), {.worker = 0, .only = no_worker}, Origin::released);
  EXPECT_FALSE(policy_->steal(1, false));
  EXPECT_TRUE(policy_->steal(1, true));
}

TEST_F(PolicyTest, a_thief_takes_half_of_a_graph_in_its_order) {
  use("default", 2);
  push_many(10, Origin::released);
  EXPECT_EQ(policy_->steal(1, false).task->id, 1u);
  EXPECT_EQ(pop_all(1), Ids({2, 3, 4, 5}));
  EXPECT_EQ(pop_all(0), Ids({6, 7, 8, 9, 10}));
}

TEST_F(PolicyTest, a_thief_takes_one_task_of_a_recursion_and_several_of_a_flat_loop) {
  use("default", 2);
  push_many(20, Origin::forked);
  EXPECT_EQ(policy_->steal(1, false).task->id, 1u);
  EXPECT_EQ(pop_all(1), Ids());
  push_many(60, Origin::forked);
  EXPECT_EQ(policy_->steal(1, false).task->id, 2u);
  EXPECT_EQ(pop_all(1).size(), 15u);
  EXPECT_EQ(pop_all(0).size(), 63u);
}

// Methodology: the same pushes with and without the tasks that leave; what stays must come in the
// same order.
TEST_F(PolicyTest, tasks_that_leave_do_not_change_the_order_of_the_others) {
  static constexpr int kind = 0;
  static constexpr detail::BodyOps leaves{nullptr, nullptr, nullptr, nullptr, &kind};
  static constexpr detail::BodyOps stays{nullptr, nullptr, nullptr};
  for (const std::string_view policy : base::policy_names) {
    const std::string name = policy == "seeded" ? "seeded:1" : std::string(policy);
    const auto rest = [&](const bool both) {
      use(name, 2);
      tasks_.clear();
      std::set<std::uint64_t> left;
      for (int number = 0; number < 90; ++number) {
        Task& made = task(number % 5 == 0 ? number % 3 - 1 : 0);
        made.ops = number % 2 == 0 ? &leaves : &stays;
        if (!both && made.ops == &leaves) continue;
        const Origin origins[] = {Origin::forked, Origin::released};
        const int worker = number % 9 == 0 ? no_worker : number % 7 == 0 ? 1 : 0;
        policy_->push(made, {.worker = worker, .only = no_worker}, origins[number % 4 / 2]);
      }
      Task* taken[100];
      for (const std::size_t most : {std::size_t{10}, std::size_t{100}}) {
        const std::size_t count = policy_->extract(0, &kind, {taken, most});
        EXPECT_EQ(count, !both ? 0u : most == 10 ? 10u : 35u) << name;
        for (std::size_t each = 0; each < count; ++each) {
          EXPECT_EQ(taken[each]->ops, &leaves);
          EXPECT_TRUE(left.insert(taken[each]->id).second);
        }
      }
      return policy == "seeded" ? Ids() : drain(0);
    };
    EXPECT_EQ(rest(true), rest(false)) << name;
  }
}

// Two packages of two caches of four cores each.
class NearPolicyTest : public PolicyTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("HWLOC_SYNTHETIC", "pack:2 l3:2 core:4 pu:1", 1), 0);
    std::vector<int> processors(16);
    std::iota(processors.begin(), processors.end(), 0);
    near_ = base::Topology().neighbours(processors);
    ASSERT_EQ(unsetenv("HWLOC_SYNTHETIC"), 0);
  }
  base::Neighbours near_;
};

TEST_F(NearPolicyTest, a_cache_is_a_domain_and_near_ones_come_first) {
  EXPECT_EQ(near_.domain, std::vector<int>({0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
  EXPECT_EQ(near_.nearest[5],
            std::vector<int>({6, 7, 4, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST_F(NearPolicyTest, a_worker_runs_its_domain_then_its_package_then_the_machine) {
  for (const char* const name : {"fifo", "priority", "sa", "ga"}) {
    use(name, near_);
    tasks_.clear();
    for (const int worker : {15, 8, 0, 4, 5}) push(task(worker), worker);
    EXPECT_EQ(drain(6), std::string(name) == "fifo" ? Ids({4, 5, 3, 2, 1})
                                                    : Ids({5, 4, 3, 2, 1})) << name;
    for (const int worker : {0, 4, 8, 15}) push(task(1), worker);
    EXPECT_EQ(drain(13), Ids({9, 8, 6, 7})) << name;
  }
}

TEST_F(NearPolicyTest, the_order_is_exact_within_a_domain_and_whatever_others_have_there) {
  use("priority", near_);
  for (const int priority : {3, 1, 4, 2}) push(task(priority), priority - 1);
  push(task(100), 4);
  EXPECT_EQ(drain(0), Ids({3, 1, 4, 2, 5}));
}

TEST_F(NearPolicyTest, a_task_of_no_domain_goes_by_its_priority_in_each) {
  use("sa", near_);
  Task& low = task(1);
  Task& high = task(3);
  push(low, 9);
  push(high, 1);
  policy_->raise(low, 2);
  push(task(0), no_worker);
  EXPECT_EQ(policy_->pop(1).task, &high) << "its own comes first, since it is higher";
  push(task(1), 1);
  EXPECT_EQ(policy_->pop(1).task, &low) << "raised above what is in the own domain";
  EXPECT_EQ(drain(0), Ids({4, 3, 1})) << "before what others have; the last is stale";
  EXPECT_EQ(policy_->size(), 0);
}

TEST_F(PolicyTest, take_gives_the_newest_entry_and_no_other) {
  use("default", 1);
  Task& first = task(0);
  Task& second = task(0);
  policy_->push(first, {.worker = 0, .only = no_worker}, Origin::forked);
  policy_->push(second, {.worker = 0, .only = no_worker}, Origin::forked);
  EXPECT_FALSE(policy_->take(0, first));
  EXPECT_TRUE(policy_->take(0, second));
  EXPECT_TRUE(policy_->take(0, first));
}

// Methodology: each worker has many tasks of its own, of which it pops one in turn.
TEST_F(PolicyTest, a_task_made_ready_by_a_foreign_thread_passes_a_backlog) {
  for (const char* const name : {"default", "steal", "seeded:1", "seeded:2"}) {
    for (const int workers : {1, 2, 8, 64}) {
      use(name, workers);
      tasks_.clear();
      for (int i = 0; i < 8000; ++i) {
        const Origin origin = i % 2 == 0 ? Origin::forked : Origin::released;
        policy_->push(task(0), {.worker = i % workers, .only = no_worker}, origin);
      }
      Task& begins = task(0);
      Task& goes_on = task(0);
      policy_->push(begins, {}, Origin::released);
      policy_->push(goes_on, {}, Origin::resumed);
      std::uint64_t popped = 0;
      int found = 0;
      for (int turn = 0; found < 2 && popped < 4000; ++turn) {
        const Entry next = policy_->pop(turn % workers);
        if (!next) continue;
        ++popped;
        if (next.task == &begins || next.task == &goes_on) ++found;
      }
      EXPECT_LE(popped, 1000u) << name << ", " << workers;
    }
  }
}

TEST_F(PolicyTest, a_waiting_task_runs_its_child_in_place_until_a_foreign_tasks_turn) {
  use("default", 1);
  policy_->push(task(0), {}, Origin::released);
  int taken = 0;
  for (; taken < 2000; ++taken) {
    Task& child = task(0);
    policy_->push(child, {.worker = 0, .only = no_worker}, Origin::forked);
    if (!policy_->take(0, child)) break;
  }
  EXPECT_LT(taken, 1000);
  EXPECT_EQ(policy_->pop(0).task->id, 1u);
  policy_->push(task(0), {}, Origin::resumed);
  EXPECT_FALSE(policy_->take(0, tasks_[tasks_.size() - 2]));
  EXPECT_EQ(policy_->pop(0).task, &tasks_.back());
  EXPECT_TRUE(policy_->take(0, tasks_[tasks_.size() - 2]));
}

TEST_F(PolicyTest, seeded_gives_who_yields_its_turn_though_there_is_always_another) {
  use("seeded:1", 1);
  EXPECT_FALSE(policy_->pop(0));
  for (int i = 0; i < 3; ++i) policy_->push(task(0), {.worker = 0}, Origin::forked);
  Task& yields = task(0);
  policy_->push(yields, {.worker = 0, .only = no_worker, .before = 10}, Origin::yielded);
  for (int turn = 0; turn < 12; ++turn) {
    const Entry next = policy_->pop(0);
    ASSERT_TRUE(next);
    if (next.task == &yields) {
      EXPECT_GE(turn, 9);
      return;
    }
    policy_->push(*next.task, {.worker = 0}, Origin::forked);
  }
  FAIL() << "it was passed over";
}

// Methodology: the same pushes under the same seed give the same draws; under other seeds at least
// one other order.
TEST_F(PolicyTest, seeded_draws_the_same_order_from_the_same_seed) {
  const auto draws = [this](const std::string& seed) {
    use("seeded:" + seed, 4);
    tasks_.clear();
    for (int count = 0; count < 10; ++count) {
      policy_->push(task(0), {.worker = 0, .only = no_worker}, Origin::forked);
    }
    Ids ids;
    for (int turns = 0; turns < 1000 && ids.size() < 10; ++turns) {
      if (const Entry next = policy_->pop(turns % 4)) ids.push_back(next.task->id * 10 + turns % 4);
    }
    return ids;
  };
  const Ids first = draws("1");
  ASSERT_EQ(first.size(), 10u);
  EXPECT_EQ(draws("1"), first);
  std::set<Ids> orders;
  for (const char* const seed : {"2", "3", "4", "5"}) orders.insert(draws(seed));
  EXPECT_GT(orders.size(), 1u);
}

TEST_F(PolicyTest, seeded_passes_over_a_worker_until_it_asks_for_a_task) {
  for (const char* const seed : {"seeded:1", "seeded:2", "seeded:3"}) {
    use(seed, 2);  // worker 0 has its turn
    tasks_.clear();
    for (int i = 0; i < 20; ++i) policy_->push(task(0), {.worker = 0}, Origin::forked);
    Task& tied = task(0);
    policy_->push(tied, {.worker = 0, .only = 0}, Origin::resumed);
    EXPECT_EQ(policy_->turn(), 0);
    policy_->pass_over(1);  // whose turn it is not
    EXPECT_EQ(policy_->turn(), 0);
    policy_->pass_over(0);
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(policy_->turn(), 1);
      EXPECT_NE(policy_->pop(1).task, &tied);
    }
    EXPECT_FALSE(policy_->pop(1));
    EXPECT_EQ(policy_->turn(), no_worker);
    EXPECT_EQ(policy_->pop(0).task, &tied);
  }
}

// A team of OpenMP: nobody knows where its threads run, and there may be thousands.
TEST_F(PolicyTest, a_thief_finds_what_any_member_of_a_large_group_has) {
  constexpr int workers = 3000;
  for (const char* const name : {"default", "steal"}) {
    policy_ = make_policy(name, {.workers = workers,
                                 .nearest = {},
                                 .domain = std::vector<int>(workers),
                                 .wake = [](void*, int) {},
                                 .wake_context = nullptr});
    for (const int owner : {0, 1, 63, 64, 65, 127, 128, 1500, 2998, 2999}) {
      for (const int thief : {0, 1, 62, 63, 64, 2047, 2998, 2999}) {
        if (owner == thief) continue;
        EXPECT_FALSE(policy_->steal(thief, true));
        Task& only = task(0);
        push(only, owner);
        EXPECT_EQ(policy_->size(), 1);
        EXPECT_EQ(policy_->steal(thief, true).task, &only) << owner << ' ' << thief;
        EXPECT_EQ(policy_->size(), 0);
        policy_->local_queues(owner)->close();
        Task& again = task(0);
        push(again, owner);
        EXPECT_EQ(policy_->pop(owner).task, &again);
        if (thief % 2 == 0) policy_->local_queues(owner)->close();
      }
    }
  }
}

TEST_F(PolicyTest, an_unknown_name_is_refused_with_the_valid_ones) {
  for (const char* const name : {"lifo", "seeded:", "seeded:1x", ""}) {
    EXPECT_THROW(use(name, 1), Error) << name;
  }
}

// ---- priorities that flow --------------------------------------------------------------------

using task::AccessKind;

// Tasks made by hand under a policy, whose sends are marked; what is raised while ready is noted.
class Flowing {
 public:
  explicit Flowing(const std::string& policy)
      : policy_(make_policy(policy, {.workers = 1,
                                     .nearest = {{}},
                                     .domain = {0},
                                     .wake = [](void*, int) {},
                                     .wake_context = nullptr})) {
    lineage_.use(policy_->flow(), &requeue, this);
    parent_.priority.store(0);
  }
  ~Flowing() {
    task::Outcome outcome;
    table_.clear(outcome);
    for (Made& made : made_) {
      task::end_lineage(made.task, slots_, [](Task& task) { task.references.fetch_sub(1); });
      task::destroy_accesses(made.task, slots_);
    }
  }

  Task& add(const std::string& name, const std::vector<task::AccessSpec>& specs,
            const int given = 0) {
    Made& made = made_.emplace_back();
    made.name = name;
    made.task.references.store(2);  // one is ours: nothing dies
    made.task.kind = detail::CompletionKind::task;
    made.task.state.store(task::State::created);
    made.task.id = made_.size();
    made.task.priority.store(given);
    made.task.parent = &parent_;
    made.task.scope = &scope_;
    made.block = std::make_unique<task::AccessBlock[]>(
        task::AccessBlock::bytes(specs.size()) / sizeof(task::AccessBlock));
    task::build_accesses(made.task, made.block.get(), specs);
    task::Outcome outcome;
    table_.reserve(made.task, outcome);
    if (table_.link(made.task, slots_, outcome)) {
      made.task.state.store(task::State::ready);
    }
    return made.task;
  }
  void send(const std::string& name, const std::vector<task::AccessSpec>& specs) {
    (void)add(name, specs, 7);
  }
  void end(Task& task) {
    task::Tally tally;
    task::Outcome outcome;
    task.state.store(task::State::running);
    task::complete(task, tally, outcome);
  }
  // The parent that creates what comes next.
  void set_parent_priority(const int priority) { parent_.priority.store(priority); }

  [[nodiscard]] std::vector<std::pair<std::string, int>> priorities() const {
    std::vector<std::pair<std::string, int>> all;
    for (const Made& made : made_) all.emplace_back(made.name, made.task.priority.load());
    return all;
  }
  [[nodiscard]] const std::vector<std::uint64_t>& raised() const { return raised_; }

 private:
  struct Made {
    std::string name;
    Task task{};
    std::unique_ptr<task::AccessBlock[]> block;
  };
  static void requeue(void* self, Task& task, int) {
    static_cast<Flowing*>(self)->raised_.push_back(task.id);
  }

  std::unique_ptr<Policy> policy_;
  base::SlabPool pool_;
  base::SlabCache slots_{pool_};
  task::Lineage lineage_;
  task::DependTable table_{policy_->flow().marked != 0 ? &lineage_ : nullptr};
  Task parent_{};
  task::Scope scope_;
  std::deque<Made> made_;
  std::vector<std::uint64_t> raised_;
};

constexpr int tiles = 4;
constexpr int top = 1'000'000'000;  // of a send under ma3 and sa
int tile[tiles][tiles];
constexpr int owner(const int column) { return column % 2; }

// Sends tile (i, k) to the other one of two ranks, or receives it, where it is read.
void add_messages(Flowing& graph, const int rank, const int i, const int k) {
  bool read_by[2] = {};
  if (i == k) {
    if (k + 1 < tiles) read_by[owner(k)] = true;
  } else {
    for (int j = k + 1; j <= i; ++j) read_by[owner(j)] = true;
  }
  const std::string name = std::to_string(i) + std::to_string(k);
  if (!read_by[1 - owner(k)]) return;
  if (owner(k) == rank) {
    graph.send("send " + name, {{&tile[i][k], AccessKind::in}});
  } else {
    (void)graph.add("receive " + name, {{&tile[i][k], AccessKind::out}});
  }
}

// The tasks of one of two ranks for a matrix of 4 x 4 tiles whose columns they have in turn: the
// graph of Figures 1 and 3 of Pereira et al. 2021.
void add_cholesky(Flowing& graph, const int rank) {
  const auto add = [&graph, rank](const int column, const std::string& name,
                                  const std::vector<task::AccessSpec>& specs) {
    if (owner(column) == rank) (void)graph.add(name, specs);
  };
  using std::to_string;
  for (int k = 0; k < tiles; ++k) {
    add(k, "potrf " + to_string(k), {{&tile[k][k], AccessKind::inout}});
    add_messages(graph, rank, k, k);
    for (int i = k + 1; i < tiles; ++i) {
      add(k, "trsm " + to_string(i) + to_string(k),
          {{&tile[k][k], AccessKind::in}, {&tile[i][k], AccessKind::inout}});
      add_messages(graph, rank, i, k);
    }
    for (int j = k + 1; j < tiles; ++j) {
      add(j, "syrk " + to_string(j) + to_string(k),
          {{&tile[j][k], AccessKind::in}, {&tile[j][j], AccessKind::inout}});
      for (int i = j + 1; i < tiles; ++i) {
        add(j, "gemm " + to_string(i) + to_string(j) + to_string(k),
            {{&tile[i][k], AccessKind::in},
             {&tile[j][k], AccessKind::in},
             {&tile[i][j], AccessKind::inout}});
      }
    }
  }
}

// The tasks in the order of creation, each with the number of edges to the next send, -1: none.
constexpr int none = -1;
const std::vector<std::pair<std::string, int>> distances[2] = {
    {{"potrf 0", 2},  {"trsm 10", 1},    {"send 10", 0},    {"trsm 20", 1},
     {"send 20", 0},  {"trsm 30", 1},    {"send 30", 0},    {"syrk 20", 4},
     {"gemm 320", 3}, {"receive 21", 3}, {"receive 31", 3}, {"syrk 21", 3},
     {"gemm 321", 2}, {"potrf 2", 2},    {"trsm 32", 1},    {"send 32", 0}},
    {{"receive 10", 3}, {"receive 20", 3}, {"receive 30", 3},    {"syrk 10", 3},
     {"gemm 210", 2},   {"gemm 310", 2},   {"syrk 30", none},    {"potrf 1", 2},
     {"trsm 21", 1},    {"send 21", 0},    {"trsm 31", 1},       {"send 31", 0},
     {"syrk 31", none}, {"receive 32", none}, {"syrk 32", none}, {"potrf 3", none}}};

TEST(FlowTest, each_policy_gives_the_graph_of_the_paper_its_priorities) {
  for (const int rank : {0, 1}) {
    for (const std::string policy : {"default", "fifo", "ma1", "ma2", "ma3", "sa"}) {
      Flowing graph(policy);
      add_cholesky(graph, rank);
      std::vector<std::pair<std::string, int>> expected;
      for (const auto& [name, distance] : distances[rank]) {
        int priority = 0;
        if (policy == "default" || policy == "fifo") priority = distance == 0 ? 7 : 0;
        if (policy == "ma1") priority = distance == 0 ? 1 : 0;
        if (policy == "ma2") priority = distance != none ? 1 : 0;
        if (policy == "ma3" || policy == "sa") priority = distance != none ? top - distance : 0;
        expected.emplace_back(name, priority);
      }
      EXPECT_EQ(graph.priorities(), expected) << policy << ", rank " << rank;
    }
  }
}

TEST(FlowTest, a_nearer_send_raises_again_and_only_what_is_ready_is_queued_again) {
  int x = 0, y = 0;
  Flowing graph("sa");
  (void)graph.add("first", {{&x, AccessKind::inout}});
  (void)graph.add("second", {{&x, AccessKind::inout}});
  graph.send("far", {{&x, AccessKind::inout}});
  graph.send("near", {{&x, AccessKind::in}, {&y, AccessKind::out}});
  using Priorities = std::vector<std::pair<std::string, int>>;
  EXPECT_EQ(graph.priorities(), Priorities({{"first", top - 2}, {"second", top - 1},
                                            {"far", top}, {"near", top}}));
  EXPECT_EQ(graph.raised(), Ids({1}));
  Flowing shorter("sa");
  (void)shorter.add("first", {{&x, AccessKind::inout}});
  (void)shorter.add("second", {{&x, AccessKind::in}, {&y, AccessKind::out}});
  shorter.send("far", {{&y, AccessKind::in}});
  shorter.send("near", {{&x, AccessKind::in}});
  EXPECT_EQ(shorter.priorities(), Priorities({{"first", top - 1}, {"second", top - 1},
                                              {"far", top}, {"near", top}}));
  EXPECT_EQ(shorter.raised(), Ids({1, 1}));
}

// More than a list's slot and more than the table links at once.
TEST(FlowTest, all_of_forty_predecessors_are_raised_and_what_precedes_them) {
  int x = 0;
  std::vector<int> fields(40);
  Flowing graph("sa");
  (void)graph.add("root", {{&x, AccessKind::out}});
  std::vector<task::AccessSpec> all;
  for (int& field : fields) {
    (void)graph.add("part", {{&x, AccessKind::in}, {&field, AccessKind::out}});
    all.push_back({&field, AccessKind::in});
  }
  graph.send("send", all);
  const auto priorities = graph.priorities();
  EXPECT_EQ(priorities.front().second, top - 2);
  for (std::size_t i = 1; i <= fields.size(); ++i) EXPECT_EQ(priorities[i].second, top - 1) << i;
}

TEST(FlowTest, a_task_that_is_complete_precedes_no_other) {
  int x = 0;
  Flowing graph("sa");
  Task& first = graph.add("first", {{&x, AccessKind::inout}});
  Task& second = graph.add("second", {{&x, AccessKind::inout}});
  graph.end(first);
  graph.send("send", {{&x, AccessKind::in}});
  EXPECT_EQ(second.priority.load(), top - 1);
  EXPECT_EQ(first.priority.load(), 0);
  EXPECT_EQ(graph.raised(), Ids());
}

TEST(FlowTest, a_child_is_next_to_its_parent_under_sa_alone) {
  for (const std::string policy : {"ma1", "ma2", "ma3", "sa"}) {
    int x = 0;
    Flowing graph(policy);
    graph.set_parent_priority(top - 5);
    EXPECT_EQ(graph.add("child", {{&x, AccessKind::out}}).priority.load(),
              policy == "sa" ? top - 6 : 0)
        << policy;
  }
}

}  // namespace
}  // namespace imbrex::sched
