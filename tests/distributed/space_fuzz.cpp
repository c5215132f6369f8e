// SPDX-License-Identifier: BSD-3-Clause
// Methodology: random sequences of insertions, the same on one to eight ranks of one process, each
// a thread of its own over a network of the test's, which delays and reorders between pairs. At the
// end the owners have the values of a sequential program, which also determines the failures.
#include "distributed/data/space/space.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "distributed/insertions/player.hpp"
#include "distributed/stations.hpp"
#include "fuzz/seeds.hpp"
#include "imbrex/distributed/data_tasks.hpp"
#include "imbrex/future.hpp"
#include "imbrex/scope.hpp"

namespace imbrex::test {
namespace {

class Rank {
 public:
  Rank(Network& network, const int rank, const distributed::BroadcastOptions& options)
      : station_(network, rank), waves(station_.way(1)), broadcasts(station_.way(2), options) {
    station_.set_receiver(1, [this](int from, distributed::Bytes bytes) {
      waves.receive(from, bytes);
    });
    station_.set_receiver(2, [this](int from, distributed::Bytes bytes) {
      broadcasts.receive(from, bytes);
    });
  }

 private:
  Station station_;

 public:
  distributed::Waves waves;
  distributed::Broadcasts broadcasts;
};

struct Space : SpaceBase {
  explicit Space(detail::DataSpace* const space) noexcept : SpaceBase(space) {}
};

[[nodiscard]] detail::DataSpace* open(Rank& rank, const int own, const Plan& plan,
                                      const std::int64_t window) {
  detail::Members ranks;
  ranks.id = plan.seed;
  for (int i = 0; i < plan.ranks; ++i) {
    ranks.world.push_back(i);
    ranks.nodes.push_back(plan.seed % 3 == 0 ? i / 2 : i);
  }
  SpaceOptions options;
  options.tasks_ahead = window;
  options.name = "fuzz";
  return new detail::DataSpace({rank.broadcasts, rank.waves, own}, ranks, options);
}

void run(const Plan& plan) {
  SCOPED_TRACE("seed " + std::to_string(plan.seed) + ", ranks " + std::to_string(plan.ranks));
  const Sequence sequence = Maker(plan).make();
  std::mt19937 random(plan.seed);
  distributed::BroadcastOptions options;
  options.kind = std::array{distributed::TreeKind::automatic, distributed::TreeKind::star,
                            distributed::TreeKind::binomial, distributed::TreeKind::chain,
                            distributed::TreeKind::binary}[random() % 5];
  options.chain_from = 4096;
  options.segment = 2048;
  options.inline_max = random() % 2 == 0 ? 3000 : 16;
  const std::int64_t window = std::array{1, 2, 5, 30, 0}[random() % 5];
  std::vector<std::unique_ptr<Rank>> all;
  Network network(plan.ranks, plan.seed, 2);
  for (int i = 0; i < plan.ranks; ++i) {
    all.push_back(std::make_unique<Rank>(network, i, options));
  }
  std::vector<std::thread> mains;
  std::atomic<int> left{plan.ranks};
  Promise<void> all_have_ended;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    mains.emplace_back([&, rank] {
      const unsigned own = plan.seed * 8 + static_cast<unsigned>(rank);
      if (own % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // late
      const struct Leave {
        std::atomic<int>& ranks_left;
        Promise<void>& all_ended;
        ~Leave() {
          if (ranks_left.fetch_sub(1) == 1) all_ended.set();
        }
      } leave_at_the_end{left, all_have_ended};
      Space space(open(*all[static_cast<std::size_t>(rank)], rank, plan, window));
      Player player(sequence, plan, space, own);
      player.play(own % 3 == 0);
      player.compare();
    });
  }
  all_have_ended.future().get();  // a join would block this thread, which is a worker
  for (std::thread& one : mains) one.join();
}

// Runs a program for each seed. FUZZ_SEED of the environment runs that one alone.
template <class PlanOf>
void each_seed(const PlanOf plan_of) {
  Seeds seeds(1);
  if (const char* const seed = std::getenv("FUZZ_SEED")) {
    seeds.take("--seed", seed);
  } else {
    seeds.take("--seconds", "0.5");
  }
  finish([] {});  // the runtime runs
  while (const auto seed = seeds.next()) {
    SCOPED_TRACE("run it again with FUZZ_SEED=" + std::to_string(*seed));
    std::printf("FUZZ_SEED=%llu\n", static_cast<unsigned long long>(*seed));
    std::fflush(stdout);  // the last line, also after a crash
    Plan plan = plan_of(static_cast<unsigned>(*seed));
    plan.seed = static_cast<unsigned>(*seed);
    plan.ranks = 1 + static_cast<int>(*seed % 8);
    run(plan);
  }
}

TEST(SpaceFuzz, readers_and_writers_leave_what_a_sequential_program_leaves) {
  each_seed([](unsigned) { return Plan{.moves = false}; });
}

TEST(SpaceFuzz, moves_flushes_discards_and_reductions_do_too) {
  each_seed([](unsigned) { return Plan{}; });
}

TEST(SpaceFuzz, loops_that_leave_out_what_does_not_concern_a_rank_do_too) {
  each_seed([](const unsigned seed) {
    return Plan{.trimmed = true, .moves = seed % 2 == 0};
  });
}

TEST(SpaceFuzz, dependents_of_a_failed_task_fail_and_the_rest_is_right) {
  each_seed([](const unsigned seed) {
    return Plan{.trimmed = seed % 5 == 0,
                .moves = seed % 3 != 0,
                .failing = seed % 2 == 0 ? 5u : 40u};
  });
}

}  // namespace
}  // namespace imbrex::test
