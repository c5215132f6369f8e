// SPDX-License-Identifier: BSD-3-Clause
// The generators: tasks, messages and bytes as the applications have them, by closed forms and by
// the applications' own geometry.
#include "simulate/programs/programs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "imbrex/error.hpp"
#include "simulate/engine/cluster.hpp"
#include "smith_waterman/tiles/tiling.hpp"
#include "sparse/brick.hpp"
#include "stencil2d/balance.hpp"
#include "stencil2d/field.hpp"

namespace imbrex::simulate {
namespace {

const std::vector<std::string> policies = {"default", "steal", "fifo", "priority", "ma1",
                                           "ma2",     "ma3",   "sa",   "fa",       "ga"};

struct Counts {
  std::int64_t tasks = 0;
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};

// Simulates under every policy, with eager and with long messages.
void expect_counts(const std::function<std::unique_ptr<Program>()>& make, const int ranks,
                   const Counts& counts, const double in_task_ns) {
  for (const std::string& policy : policies) {
    ClusterSetup setup;
    setup.ranks = ranks;
    setup.rank.workers = 2;
    setup.rank.policy = policy;
    setup.rank.window = 16;
    setup.network.eager_bytes = policy.size() % 2 == 0 ? 1 << 20 : 100;
    const auto program = make();
    const Outcome outcome = simulate(*program, setup);
    EXPECT_EQ(outcome.sums.tasks, counts.tasks) << policy;
    EXPECT_EQ(outcome.sums.ended, outcome.sums.created) << policy;
    EXPECT_EQ(outcome.messages, counts.messages) << policy;
    EXPECT_EQ(outcome.messages_received, counts.messages) << policy;
    EXPECT_EQ(outcome.bytes, counts.bytes) << policy;
    EXPECT_EQ(outcome.bytes_received, counts.bytes) << policy;
    EXPECT_NEAR(static_cast<double>(outcome.sums.in_task_ns), in_task_ns, in_task_ns * 0.001 + 2)
        << policy;
    EXPECT_GE(static_cast<double>(outcome.time_ns) * ranks * 2, in_task_ns) << policy;
  }
}

[[nodiscard]] int log2_up(const int ranks) noexcept {
  int rounds = 0;
  while ((1 << rounds) < ranks) ++rounds;
  return rounds;
}

// ---- apps/fft --------------------------------------------------------------------------------

TEST(Programs, exchange_sends_each_block_of_each_chunk_to_each_rank) {
  ExchangeSetup setup;
  setup.ranks = 3;
  setup.n = 60;
  setup.chunks = 4;
  setup.parts = 7;
  const auto make = [&] { return make_exchange(setup, [](auto) { return Time{1000}; }); };
  constexpr std::int64_t messages = std::int64_t{3} * 3 * 4 * 7;  // a rank sends to itself, too
  expect_counts(make, 3, {3 * (4 + 7) + messages, messages, 16 * 60 * 60}, 2 * 60 * 1000.0);
  setup.parts = 100;  // more than a rank has lines
  constexpr std::int64_t more = std::int64_t{3} * 3 * 4 * 20;
  expect_counts(make, 3, {3 * (4 + 20) + more, more, 16 * 60 * 60}, 2 * 60 * 1000.0);
}

TEST(Programs, exchange_of_a_collective_sends_a_block_or_its_groups_to_each_rank) {
  ExchangeSetup setup{.ranks = 3, .n = 60, .chunks = 4, .parts = 7};
  const auto make = [&] { return make_exchange(setup, [](auto) { return Time{1000}; }); };
  constexpr double in_task_ns = 2 * 60 * 1000.0;
  setup.variant = ExchangeVariant::blocking;
  expect_counts(make, 3, {3 * (4 + 7), 3 * 3, 16 * 60 * 60}, in_task_ns);
  setup.variant = ExchangeVariant::partial_receive;
  expect_counts(make, 3, {3 * (4 + 7), 3 * 3 * 7, 16 * 60 * 60}, in_task_ns);
  setup.variant = ExchangeVariant::partial_blocks;
  expect_counts(make, 3, {3 * (4 + 7 * (3 + 1)), 3 * 3, 16 * 60 * 60}, in_task_ns);
}

// Two ranks of one worker: 32 lines of 1 ms before and after, and a block of 16,384 us.
TEST(Programs, exchange_overlaps_as_each_variant_can) {
  constexpr double block_ms = 16.384;
  constexpr double joined_ms = 32 * 2. / 6;  // 64 points: 2 of 6 steps of a line need both blocks
  const std::pair<ExchangeVariant, double> expected[] = {
      {ExchangeVariant::blocking, 32 + block_ms + 32},
      {ExchangeVariant::partial_receive, 32 + block_ms / 4 + 32},
      {ExchangeVariant::partial_blocks, 32 + block_ms + (32 - joined_ms) / 2 + joined_ms},
      {ExchangeVariant::messages, 32 + block_ms / 16 + 32}};
  for (const auto& [variant, ms] : expected) {
    ClusterSetup cluster;
    cluster.ranks = 2;
    cluster.rank.creator_ns = cluster.rank.task_ns = 0;
    cluster.rank.progress = Progress::dedicated_thread;
    cluster.network = {.latency_ns = 0, .overhead_ns = 0, .gap_ns = 0, .ns_per_byte = 1000,
                       .copy_ns_per_byte = 0, .eager_bytes = 1 << 20, .node_latency_ns = 0,
                       .node_ns_per_byte = 0};
    const auto program = make_exchange(
        {.variant = variant, .ranks = 2, .n = 64, .chunks = 4, .parts = 4},
        [](auto) { return Time{1'000'000}; });
    const auto time_ms = static_cast<double>(simulate(*program, cluster).time_ns) * 1e-6;
    EXPECT_NEAR(time_ms, ms, 0.02) << static_cast<int>(variant);
  }
}

TEST(Programs, exchange_refuses_lines_that_the_ranks_cannot_share) {
  ExchangeSetup setup;
  setup.ranks = 3;
  setup.n = 61;
  EXPECT_THROW((void)make_exchange(setup, [](auto) { return Time{1}; }), Error);
}

// ---- apps/stencil2d --------------------------------------------------------------------------

TEST(Programs, stencil2d_sends_the_edges_of_a_block_once_to_each_rank_that_reads_them) {
  BlocksSetup setup;
  setup.ranks = 5;
  setup.blocks = 8;
  setup.side = 16;
  setup.steps = 6;
  setup.hot = 4;
  stencil2d::Problem problem;
  problem.blocks = setup.blocks;
  problem.steps = setup.steps;
  problem.hot = setup.hot;
  const std::vector<int> owners = stencil2d::distribute(
      stencil2d::curve(8), std::vector<std::int64_t>(64, 0), setup.ranks);
  std::set<std::pair<int, int>> copies;
  double in_task_ns = 0;
  for (int block = 0; block < 64; ++block) {
    for (int side = 0; side < stencil2d::sides; ++side) {
      const int other = stencil2d::neighbour(problem, block, side);
      if (other >= 0 && owners[other] != owners[block]) copies.emplace(other, owners[block]);
    }
    for (int step = 0; step < setup.steps; ++step) {
      in_task_ns += 5000.0 * problem.cost(block, step);
    }
  }
  const auto messages = static_cast<std::int64_t>(copies.size()) * setup.steps;
  expect_counts([&] { return make_blocks(setup, [](auto) { return Time{5000}; }); }, 5,
                {64 * (1 + 6), messages, messages * 4 * 16 * 8}, in_task_ns);
}

// ---- apps/minife, apps/hpcg ------------------------------------------------------------------

// Sums over the ranks of a grid with `points` on a side, for one exchange.
struct Halos {
  Halos(const int ranks, const int points, const int blocks) {
    sparse::BrickShape shape = sparse::grid_of_cubes(points, ranks, blocks);
    for (int& count : shape.points) count += extra;
    for (int rank = 0; rank < ranks; ++rank) {
      const sparse::Brick brick(shape, rank);
      parts += static_cast<std::int64_t>(brick.blocks().size());
      for (const sparse::Neighbour& neighbour : brick.neighbours()) {
        ++messages;
        bytes += neighbour.send.count() * 8;
      }
    }
  }
  inline static int extra = 0;  // points of a side that all ranks have together, beside theirs
  std::int64_t parts = 0, messages = 0, bytes = 0;
};

TEST(Programs, minife_has_the_loops_exchanges_and_sums_of_its_iterations) {
  for (const int ranks : {1, 3, 4}) {
    GradientsSetup setup;
    setup.ranks = ranks;
    setup.n = 10;
    setup.blocks = 8;
    setup.iterations = 5;
    Halos::extra = 1;  // nodes are one more than elements
    const Halos halos(ranks, 10, 8);
    const std::int64_t sums = 1 + 2 * 5;
    const std::int64_t rounds = sums * ranks * log2_up(ranks);
    const Counts counts{halos.parts * (2 + 4 * 5) + sums * ranks + 2 * 5 * halos.messages,
                        5 * halos.messages + rounds, 5 * halos.bytes + rounds * 8};
    // multiply once, add and dot three times and twice in an iteration; two at the beginning
    const double in_task_ns = ranks * (1000.0 * (5 * (1 + 3 + 2) + 2));
    expect_counts([&] { return make_gradients(setup, [](auto) { return Time{1000}; }); }, ranks,
                  counts, in_task_ns);
  }
}

TEST(Programs, hpcg_has_the_exchanges_of_four_levels) {
  constexpr int ranks = 4;
  GradientsSetup setup;
  setup.multigrid = true;
  setup.ranks = ranks;
  setup.n = 16;
  setup.blocks = 8;
  setup.iterations = 3;
  Halos::extra = 0;
  const Halos levels[] = {{ranks, 16, 8}, {ranks, 8, 8}, {ranks, 4, 8}, {ranks, 2, 8}};
  constexpr std::int64_t exchanges[] = {4, 3, 3, 1};
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  for (std::size_t l = 0; l < 4; ++l) {
    messages += 3 * exchanges[l] * levels[l].messages;
    bytes += 3 * exchanges[l] * levels[l].bytes;
  }
  // On level 0: clear, two smooths, residual, prolong, and "r z", turn, multiply, advance, reduce,
  // "r r". On levels 1 and 2: clear, two smooths, residual, prolong, and the restriction to there.
  std::int64_t tasks = 3 * (11 * levels[0].parts + 6 * levels[1].parts + 6 * levels[2].parts +
                            3 * levels[3].parts);
  tasks += levels[0].parts;  // "r r" before the first iteration
  const std::int64_t sums = 1 + 3 * 3;
  tasks += sums * ranks + 2 * messages;
  const std::int64_t rounds = sums * ranks * log2_up(ranks);
  for (const std::string& policy : policies) {
    ClusterSetup cluster;
    cluster.ranks = ranks;
    cluster.rank.workers = 2;
    cluster.rank.policy = policy;
    const auto program = make_gradients(setup, [](auto) { return Time{1000}; });
    const Outcome outcome = simulate(*program, cluster);
    EXPECT_EQ(outcome.sums.tasks, tasks) << policy;
    EXPECT_EQ(outcome.messages, messages + rounds) << policy;
    EXPECT_EQ(outcome.bytes_received, bytes + rounds * 8) << policy;
  }
}

// Recorded by bench/papers/ics19 (ics19_results.json, part solvers, hpcg): tasks of all ranks, and
// bytes that a rank sends in an iteration.
TEST(Programs, hpcg_has_the_tasks_and_bytes_of_recorded_runs_of_the_application) {
  struct Recorded {
    int ranks;
    std::int64_t tasks;
    std::int64_t bytes;
  };
  for (const Recorded& recorded : {Recorded{2, 4444, 428'584}, Recorded{4, 9768, 862'472}}) {
    GradientsSetup setup;
    setup.multigrid = true;
    setup.ranks = recorded.ranks;
    setup.n = 104;
    setup.blocks = 16;
    setup.iterations = 5;
    ClusterSetup cluster;
    cluster.ranks = recorded.ranks;
    cluster.rank.workers = 4;
    const auto program = make_gradients(setup, [](auto) { return Time{100'000}; });
    const Outcome outcome = simulate(*program, cluster);
    EXPECT_EQ(outcome.sums.tasks, recorded.tasks);
    const std::int64_t sums = std::int64_t{16} * recorded.ranks * log2_up(recorded.ranks);
    EXPECT_EQ(outcome.bytes, 5 * recorded.ranks * recorded.bytes + sums * 8);
  }
}

// ---- apps/smith_waterman ---------------------------------------------------------------------

TEST(Programs, wavefront_sends_an_edge_where_its_reader_is_on_another_rank) {
  for (const bool cyclic : {false, true}) {
    WavefrontSetup setup{.ranks = 3, .rows = 450, .columns = 620, .outer_rows = 100,
                         .outer_columns = 100, .inner_rows = 30, .inner_columns = 20,
                         .cyclic = cyclic};
    using smith_waterman::Distribution;
    const smith_waterman::Tiling tiling{
        .whole = {450, 620}, .outer = {100, 100}, .inner = {30, 20}, .ranks = 3,
        .distribution = cyclic ? Distribution::cyclic : Distribution::block};
    Counts counts;
    for (int i = 0; i < tiling.down(); ++i) {
      for (int j = 0; j < tiling.across(); ++j) {
        const auto extent = tiling.extent(i, j);
        counts.tasks += 1 + ((extent.rows + 29) / 30) * ((extent.columns + 19) / 20);
        const auto reads = [&](const int row, const int column, const std::int64_t cells) {
          if (row < 0 || column < 0 || tiling.home(row, column) == tiling.home(i, j)) return;
          ++counts.messages;
          counts.bytes += cells * 4;
        };
        reads(i - 1, j, extent.columns);
        reads(i, j - 1, extent.rows);
        reads(i - 1, j - 1, 1);
      }
    }
    ASSERT_GT(counts.messages, 10);
    expect_counts([&] { return make_wavefront(setup, [](auto) { return Time{60'000}; }); }, 3,
                  counts, 450.0 * 620 * 100);
  }
}

// Inner tiles of an outer tile: with as many workers as there are, the longest chain.
TEST(Programs, a_task_that_creates_tasks_waits_for_them) {
  const WavefrontSetup setup{.ranks = 1, .rows = 80, .columns = 80, .outer_rows = 40,
                             .outer_columns = 40, .inner_rows = 10, .inner_columns = 10,
                             .cyclic = false};
  ClusterSetup cluster;
  cluster.rank.workers = 64;
  cluster.rank.creator_ns = cluster.rank.task_ns = 0;
  const auto program = make_wavefront(setup, [](auto) { return Time{1'000'000}; });
  const Outcome outcome = simulate(*program, cluster);
  // Three diagonals of outer tiles, each of seven diagonals of inner ones.
  EXPECT_NEAR(static_cast<double>(outcome.time_ns), 21e6, 21e6 * 0.001);
}

}  // namespace
}  // namespace imbrex::simulate
