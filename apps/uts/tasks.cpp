// SPDX-License-Identifier: BSD-3-Clause
// The variant with imbrex's work between ranks: all that it takes beside the expansion of nodes.
#include <imbrex/work_pool.hpp>

#include <deque>

#include "variants.hpp"

namespace uts {
namespace {

// On one cache line with no other worker's.
struct alignas(64) Worker {
  explicit Worker(const Run& run) : search(run.tree, run.settings, run.progress) {}
  Search search;
};

}  // namespace

std::vector<Tally> run_imbrex(const Run& run) {
  imbrex::WorkPool<Node> pool(run.comm,
                              {.chunk = static_cast<std::uint32_t>(run.settings.chunk),
                               .poll_interval = static_cast<std::uint32_t>(run.settings.interval),
                               .name = "uts"});
  std::deque<Worker> workers;
  for (int i = 0; i < pool.workers(); ++i) workers.emplace_back(run);
  int rank = 0;
  MPI_Comm_rank(run.comm, &rank);
  if (rank == 0) {
    const Node root = root_of(run.tree);
    workers.front().search.count_root(root);
    if (root.children > 0) pool.push(root);
  }
  const imbrex::WorkPoolCounters counters =
      pool.process([&](const Node& node, imbrex::Emit<Node>& emit) {
        Search& search = workers[static_cast<std::size_t>(emit.worker())].search;
        Node parents[Search::batch_max] = {node};
        const std::size_t count = 1 + emit.take(parents + 1, search.batch() - 1);
        const std::span<const Node> all(parents, count);
        Node* const children = emit.append(children_of(all) + 1);
        emit.drop_from(search.expand(all, children));
      });
  std::vector<Tally> tallies;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const imbrex::WorkPoolTally& worker = counters.workers[i];
    tallies.push_back({workers[i].search.counts(), worker.work_s, worker.overhead_s,
                       worker.search_s, worker.idle_s, 0, 0});
  }
  tallies.front().steals = counters.steals;
  tallies.front().failed = counters.failed_steals;
  return tallies;
}

}  // namespace uts
