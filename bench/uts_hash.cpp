// SPDX-License-Identifier: BSD-3-Clause
// What the search of a tree costs beside its hashes, on one core, in processor time: nodes a
// second of
//   search    the sequential search of apps/uts
//   families  as many hashes as it takes to hash each family of siblings by itself, so many at
//             once as the search does, with the last group of a family filled up
//   hashes    as many hashes as there are nodes, without a gap
// each the best of the rounds, which take turns. Usage: uts_hash [rounds]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "uts/expand.hpp"
#include "uts/lanes.hpp"
#include "uts/search.hpp"

namespace {

using namespace uts;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Run>
void keep_best(double& best, Run&& run) {
  const double start = cpu_seconds();
  run();
  best = std::min(best, cpu_seconds() - start);
}

Counts search_all(const Tree& tree) {
  std::atomic<std::uint64_t> progress{0};
  Settings settings;
  settings.hash = best_hash();
  settings.interval = 4096;
  Search search(tree, settings, progress);
  Stack stack;
  search.begin(stack);
  search.run(stack, UINT64_MAX);
  return search.counts();
}

// Hashes in groups that are full, for each family by itself.
std::uint64_t hashes_of_families(const Tree& tree) {
  std::uint64_t hashes = 0;
  std::vector<Node> nodes{root_of(tree)};
  std::vector<Node> children;
  while (!nodes.empty()) {
    const Node node = nodes.back();
    nodes.pop_back();
    hashes += (node.children + lanes - 1) / lanes * lanes;
    children.resize(node.children + 1);
    Node* const end = expand_with(best_hash())(tree, {&node, 1}, children.data());
    nodes.insert(nodes.end(), children.data(), end);
  }
  return hashes;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  const std::vector<State> states(60, root_state(1));
  const HashLoop loop = hash_loop_with(best_hash());
  std::uint32_t sum = 0;
  fmt::print("SHA-1: {}, {} at once; Mnodes/s\n",
             best_hash() == Hash::plain ? "plain C++" : "the processor's instructions", lanes);
  fmt::print("{:<5} {:>10} {:>10} {:>10} {:>16} {:>16}\n", "tree", "search", "families", "hashes",
             "search/families", "search/hashes");
  for (const KnownTree& known : known_trees().first(5)) {
    const Tree tree(known.parameters);
    const std::uint64_t padded = hashes_of_families(tree);
    double search_s = HUGE_VAL, families_s = HUGE_VAL, hashes_s = HUGE_VAL;
    for (int round = 0; round < rounds; ++round) {
      keep_best(search_s, [&] { sum += search_all(tree).nodes != known.counts.nodes ? 1 : 0; });
      keep_best(families_s, [&] { sum ^= loop(states, padded); });
      keep_best(hashes_s, [&] { sum ^= loop(states, known.counts.nodes); });
    }
    const double millions = 1e-6 * static_cast<double>(known.counts.nodes);
    fmt::print("{:<5} {:>10.1f} {:>10.1f} {:>10.1f} {:>16.2f} {:>16.2f}\n", known.name,
               millions / search_s, millions / families_s, millions / hashes_s,
               families_s / search_s, hashes_s / search_s);
  }
  return sum == 1 ? 1 : 0;  // so that nothing is left out
}
