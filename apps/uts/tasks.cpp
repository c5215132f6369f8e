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

using Pool = imbrex::WorkPool<Node>;

// The ranks take the children of the root in turn. Rank 0 counts all of them.
void deal(const Run& run, const Node& root, Pool& pool, Search& search) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(run.comm, &rank);
  MPI_Comm_size(run.comm, &ranks);
  std::vector<Node> children(root.children + std::size_t{1});
  const std::span<const Node> parents(&root, 1);
  const Node* const end =
      rank == 0 ? search.expand(parents, children.data())
                : expand_with(run.settings.hash)(run.tree, parents, children.data());
  for (std::ptrdiff_t i = rank; i < end - children.data(); i += ranks) {
    pool.push(children[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

std::vector<Tally> run_imbrex(const Run& run) {
  const bool apart = run.settings.steal == Steal::none;
  Pool pool(apart ? MPI_COMM_SELF : run.comm,
                              {.chunk = static_cast<std::uint32_t>(run.settings.chunk),
                               .poll_interval = static_cast<std::uint32_t>(run.settings.interval),
                               .name = "uts"});
  std::deque<Worker> workers;
  for (int i = 0; i < pool.workers(); ++i) workers.emplace_back(run);
  int rank = 0;
  MPI_Comm_rank(run.comm, &rank);
  const Node root = root_of(run.tree);
  Search& first = workers.front().search;
  if (rank == 0) first.count_root(root);
  if (root.children > 0 && apart) deal(run, root, pool, first);
  if (root.children > 0 && !apart && rank == 0) pool.push(root);
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
