// SPDX-License-Identifier: BSD-3-Clause
// The simulator beside the runtime, and properties that hold in every simulation.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "imbrex/error.hpp"
#include "simulate/engine/closure.hpp"
#include "simulate/engine/cluster.hpp"
#include "simulate/programs/programs.hpp"
#include "simulate/engine/runtime_order.hpp"

namespace imbrex::simulate {
namespace {

using detail::AccessKind;

const std::vector<std::string> policies = {"default", "steal", "fifo", "priority", "ma1",
                                           "ma2",     "ma3",   "sa",   "fa",       "ga"};

// ---- random graphs -----------------------------------------------------------------------------

Graph draw(const std::uint64_t seed, const int tasks, const bool mutexes) {
  std::mt19937_64 random(seed);
  const auto below = [&](const int limit) { return static_cast<int>(random() % limit); };
  const int density = 1 + below(4);
  Graph graph;
  for (int i = 0; i < tasks; ++i) {
    Node node{.kind = below(kinds), .priority = below(6) == 0 ? below(3) - 1 : 0, .accesses = {}};
    std::array<int, data_count> data{};
    for (int j = 0; j < data_count; ++j) data[j] = j;
    std::shuffle(data.begin(), data.end(), random);
    const int count = below(density + 1);
    for (int j = 0; j < count; ++j) {
      static constexpr AccessKind all[] = {AccessKind::in, AccessKind::in, AccessKind::inout,
                                           AccessKind::out, AccessKind::inoutset,
                                           AccessKind::mutexinoutset};
      node.accesses.emplace_back(data[j], all[below(mutexes ? 6 : 5)]);
    }
    graph.push_back(node);
  }
  return graph;
}

// The graph on every rank, without messages.
class GraphProgram final : public Program {
 public:
  explicit GraphProgram(const Graph& graph, const Time duration = 1000) : graph_(graph) {
    for (const char* const name : {"one", "two", "three"}) kernels_.push_back({name, duration});
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(int, Batch& batch) override {
    for (std::size_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_[i];
      batch.add({.kernel = static_cast<std::uint16_t>(node.kind),
                 .priority = node.priority,
                 .tag = static_cast<int>(i)});
      for (const auto& [datum, kind] : node.accesses) batch.access(datum + 1u, kind);
    }
    return false;
  }

 private:
  const Graph& graph_;
  std::vector<Kernel> kernels_;
};

class Recorder final : public Observer {
 public:
  struct Run {
    int rank, worker, node;
    std::uint64_t id;
    Time began, ended;
  };
  void began(const int rank, const int worker, const Task& task, const Time when) override {
    runs_.push_back({rank, worker, Rank::plan_of(task).tag, task.id, when, -1});
  }
  void ended(const int rank, int, const Task& task, const Time when) override {
    const auto run = std::find_if(runs_.rbegin(), runs_.rend(), [&](const Run& one) {
      return one.rank == rank && one.id == task.id;
    });
    ASSERT_NE(run, runs_.rend()) << "a task ended that had not begun";
    EXPECT_EQ(run->ended, -1);
    run->ended = when;
  }
  [[nodiscard]] const std::vector<Run>& runs() const noexcept { return runs_; }
  [[nodiscard]] std::vector<int> order() const {
    std::vector<int> nodes;
    for (const Run& run : runs_) nodes.push_back(run.node);
    return nodes;
  }

 private:
  std::vector<Run> runs_;
};

ClusterSetup cluster(const int ranks, const int workers, const std::string& policy) {
  ClusterSetup setup;
  setup.ranks = ranks;
  setup.rank.workers = workers;
  setup.rank.policy = policy;
  setup.network.latency_ns = 2000;
  setup.network.ns_per_byte = 1;
  return setup;
}

// ---- the tests ---------------------------------------------------------------------------------

// Methodology: random graphs without messages, one worker, every policy, windows that the creator
// reaches and one that it does not. No time can change an order then: the runtime and the simulator
// must begin the tasks in the same one.
TEST(Simulate, one_worker_begins_tasks_in_the_order_of_the_runtime_under_every_policy) {
  for (const std::string& policy : policies) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      const Graph graph = draw(seed, 300, seed % 2 == 0);
      const int window = std::array{512, 8, 40, 1}[seed % 4];
      ClusterSetup setup = cluster(1, 1, policy);
      setup.rank.window = static_cast<std::uint32_t>(window);
      Recorder recorder;
      setup.observer = &recorder;
      GraphProgram program(graph);
      (void)simulate(program, setup);
      ASSERT_EQ(recorder.order(), order_of_runtime(graph, policy, window))
          << policy << ", seed " << seed << ", window " << window;
    }
  }
}

// Whether node `second`, created later, must not begin before `first` has ended.
bool conflict(const Node& first, const Node& second) {
  for (const auto& [datum, kind] : first.accesses) {
    for (const auto& [other, its_kind] : second.accesses) {
      if (datum != other) continue;
      const bool is_set = kind == its_kind && kind == AccessKind::inoutset;
      if (!is_set && (kind != AccessKind::in || its_kind != AccessKind::in)) return true;
    }
  }
  return false;
}

// Methodology: the sequential program is the reference. With several workers a task may only begin
// when each earlier one that it conflicts with has ended; a worker runs one task at a time.
TEST(Simulate, several_workers_keep_the_order_of_the_sequential_program_under_every_policy) {
  for (const std::string& policy : policies) {
    const Graph graph = draw(99, 200, false);
    ClusterSetup setup = cluster(1, 4, policy);
    Recorder recorder;
    setup.observer = &recorder;
    GraphProgram program(graph, 7000);
    (void)simulate(program, setup);
    const auto& runs = recorder.runs();
    ASSERT_EQ(runs.size(), graph.size()) << policy;
    for (const auto& one : runs) {
      for (const auto& other : runs) {
        if (one.node < other.node && conflict(graph[one.node], graph[other.node])) {
          // Neighbours of a set kind may have others between them, which keeps no order of theirs.
          EXPECT_LE(one.ended, other.began) << policy << ": " << one.node << ", " << other.node;
        }
        if (&one < &other && one.worker == other.worker) {
          EXPECT_LE(one.ended, other.began);
        }
      }
    }
  }
}

CholeskySetup small_cholesky() {
  return {.n = 64 * 13, .tile = 64, .rows = 2, .columns = 3, .lookahead = 0, .marks = true};
}
Time durations(const std::string_view kernel) {
  return kernel == "gemm" ? 60'000 : kernel == "potrf" ? 10'000 : 30'000;
}

TEST(Simulate, every_task_runs_once_and_every_byte_arrives_under_every_policy) {
  constexpr std::int64_t tiles = 13;
  for (const std::string& policy : policies) {
    for (const auto progress :
         {Progress::poll, Progress::automatic, Progress::dedicated_thread}) {
      ClusterSetup setup = cluster(6, 3, policy);
      setup.rank.progress = progress;
      setup.per_node = 2;
      setup.network.sender_answers = progress == Progress::poll;
      setup.network.eager_bytes = progress == Progress::dedicated_thread ? 1 << 20 : 4096;
      const auto program = make_cholesky(small_cholesky(), durations);
      const Outcome outcome = simulate(*program, setup);
      EXPECT_EQ(outcome.sums.created, outcome.sums.tasks) << policy;
      EXPECT_EQ(outcome.sums.ended, outcome.sums.tasks) << policy;
      EXPECT_EQ(outcome.messages, outcome.messages_received) << policy;
      EXPECT_EQ(outcome.bytes, outcome.messages * 64 * 64 * 8) << policy;
      EXPECT_EQ(outcome.bytes, outcome.bytes_received) << policy;
      const std::int64_t computation = tiles + tiles * (tiles - 1) +
                                       tiles * (tiles - 1) * (tiles - 2) / 6;
      // One send, one receive and one task that frees the tile for each message.
      EXPECT_EQ(outcome.sums.tasks, computation + 3 * outcome.messages) << policy;
    }
  }
}

TEST(Simulate, a_stencil_sends_and_receives_what_its_application_does_under_every_policy) {
  for (const std::string& policy : policies) {
    for (const bool is_periodic : {true, false}) {
      StencilSetup stencil;
      stencil.ranks = 5;
      stencil.size = 5003;
      stencil.ghost = 90;
      stencil.chunks = 4;
      stencil.steps = 9;
      stencil.is_periodic = is_periodic;
      stencil.cell_ns = 100;
      ClusterSetup setup = cluster(5, 2, policy);
      setup.network.eager_bytes = 64;
      const auto program = make_stencil(stencil);
      const Outcome outcome = simulate(*program, setup);
      const std::int64_t borders = is_periodic ? 10 : 8;  // of all ranks, to another rank
      EXPECT_EQ(outcome.messages, 9 * borders) << policy;
      EXPECT_EQ(outcome.messages_received, outcome.messages) << policy;
      EXPECT_EQ(outcome.bytes_received, outcome.messages * 90 * 8) << policy;
      EXPECT_EQ(outcome.sums.ended, 9 * (5 * 6 + 2 * borders)) << policy;
      EXPECT_NEAR(static_cast<double>(outcome.sums.in_task_ns), 9 * 5003 * 100.0, 9 * 5 * 6);
    }
  }
}

TEST(Simulate, a_slow_rank_takes_longer_for_its_kernels_and_no_other_does) {
  ClusterSetup setup = cluster(6, 3, "fifo");
  double in_task[2];
  for (const bool is_slow : {false, true}) {
    setup.slow_rank = is_slow ? 0 : -1;
    setup.slowness = 3;
    const auto program = make_cholesky(small_cholesky(), durations);
    in_task[is_slow ? 1 : 0] = simulate(*program, setup).sums.in_task_ns;
  }
  EXPECT_GT(in_task[1], in_task[0] * 1.1);
  EXPECT_LT(in_task[1], in_task[0] * 2);
}

TEST(Simulate, one_input_gives_one_result_bit_by_bit) {
  for (const std::string& policy : policies) {
    ClusterSetup setup = cluster(6, 3, policy);
    setup.network.noise = 0.3;
    std::vector<std::vector<Time>> times;
    for (int repetition = 0; repetition < 2; ++repetition) {
      Recorder recorder;
      setup.observer = &recorder;
      const auto program = make_cholesky(small_cholesky(), durations);
      const Outcome outcome = simulate(*program, setup);
      times.push_back({outcome.time_ns, static_cast<Time>(outcome.sums.in_task_ns),
                       static_cast<Time>(outcome.sums.overhead_ns),
                       static_cast<Time>(outcome.events)});
      for (const auto& run : recorder.runs()) {
        times.back().insert(times.back().end(), {run.rank, run.worker, run.node, run.began});
      }
    }
    EXPECT_EQ(times[0], times[1]) << policy;
  }
}

TEST(Simulate, the_time_is_neither_below_the_work_nor_below_the_longest_chain) {
  for (const std::string& policy : policies) {
    const ClusterSetup setup = cluster(6, 3, policy);
    const auto program = make_cholesky(small_cholesky(), durations);
    const Outcome outcome = simulate(*program, setup);
    EXPECT_GE(static_cast<double>(outcome.time_ns * 18),
              outcome.sums.in_task_ns + outcome.sums.overhead_ns) << policy;
    EXPECT_GE(outcome.time_ns, 13 * 10'000 + 12 * 30'000 + 12 * 30'000) << policy;
  }
}

// ---- ranks of a node that lend processors ------------------------------------------------------

// Tasks of 1 ms, for each rank as many as given.
class UnevenProgram final : public Program {
 public:
  explicit UnevenProgram(std::vector<int> tasks) : tasks_(std::move(tasks)) {}
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(const int rank, Batch& batch) override {
    for (int task = 0; task < tasks_[static_cast<std::size_t>(rank)]; ++task) {
      batch.add({.tag = task});
    }
    return false;
  }

 private:
  const std::vector<int> tasks_;
  std::vector<Kernel> kernels_{{"compute", 1'000'000}};
};

double ms_of(const std::vector<int>& tasks, const int per_node, const bool lends,
             const std::string& policy) {
  ClusterSetup setup = cluster(static_cast<int>(tasks.size()), 1, policy);
  setup.per_node = per_node;
  setup.lends = lends;
  UnevenProgram program(tasks);
  const Outcome outcome = simulate(program, setup);
  EXPECT_EQ(outcome.sums.ended, outcome.sums.created);
  EXPECT_EQ(outcome.sums.borrowed_ns > 0, lends && per_node > 1) << policy;
  return static_cast<double>(outcome.time_ns) * 1e-6;
}

TEST(Simulate, a_node_with_lending_runs_uneven_ranks_in_the_time_of_even_ones) {
  for (const std::string& policy : policies) {
    EXPECT_NEAR(ms_of({300, 100}, 2, false, policy), 300, 2) << policy;
    EXPECT_NEAR(ms_of({300, 100}, 2, true, policy), 200, 4) << policy;
    EXPECT_NEAR(ms_of({300, 100}, 1, true, policy), 300, 2) << policy;
    EXPECT_NEAR(ms_of({50, 50, 50, 250}, 4, true, policy), 100, 4) << policy;
  }
}

TEST(Simulate, lending_runs_every_task_once_with_messages_under_every_policy) {
  for (const std::string& policy : policies) {
    ClusterSetup setup = cluster(6, 3, policy);
    setup.per_node = 4;  // the second node has two ranks
    setup.lends = true;
    setup.network.eager_bytes = 4096;
    Time times[2] = {};
    for (Time& time : times) {
      const auto program = make_cholesky(small_cholesky(), durations);
      const Outcome outcome = simulate(*program, setup);
      EXPECT_EQ(outcome.sums.created, outcome.sums.tasks) << policy;
      EXPECT_EQ(outcome.sums.ended, outcome.sums.tasks) << policy;
      EXPECT_EQ(outcome.messages, outcome.messages_received) << policy;
      time = outcome.time_ns;
    }
    EXPECT_EQ(times[0], times[1]) << policy;
  }
}

// Methodology: as in the_tasks_of_a_worker_do_not_overlap, for the processors of a node: at no time
// do more tasks run there than it has processors.
TEST(Simulate, lending_never_runs_more_tasks_than_the_node_has_processors) {
  for (const std::string& policy : policies) {
    ClusterSetup setup = cluster(4, 2, policy);
    setup.per_node = 4;
    setup.lends = true;
    Recorder recorder;
    setup.observer = &recorder;
    UnevenProgram program({90, 10, 40, 5});
    (void)simulate(program, setup);
    std::vector<std::pair<Time, int>> changes;
    for (const auto& run : recorder.runs()) {
      changes.emplace_back(run.began, 1);
      changes.emplace_back(run.ended, -1);
    }
    std::ranges::sort(changes);  // of one time, ends come first
    int running = 0;
    for (const auto& [time, by] : changes) {
      running += by;
      EXPECT_LE(running, 8) << policy << " at " << time;
    }
  }
}

// Each rank receives from the next rank, and no rank sends.
class Deadlock final : public Program {
 public:
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(const int rank, Batch& batch) override {
    batch.add({.role = Role::receive, .peer = 1 - rank, .tag = 7, .bytes = 8});
    return false;
  }

 private:
  std::vector<Kernel> kernels_{{"receive", 0}};
};

TEST(Simulate, a_program_whose_messages_nobody_sends_is_refused_with_what_it_waits_for) {
  Deadlock program;
  try {
    (void)simulate(program, cluster(2, 1, "default"));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0 waits for a message from rank 1 with tag 7"),
              std::string::npos) << error.what();
  }
}

TEST(Simulate, policies_that_cannot_be_simulated_are_refused) {
  const Graph graph = draw(1, 10, false);
  GraphProgram program(graph);
  EXPECT_THROW((void)simulate(program, cluster(1, 1, "seeded:1")), Error);
  EXPECT_THROW((void)simulate(program, cluster(1, 1, "nonsense")), Error);
}

}  // namespace
}  // namespace imbrex::simulate
