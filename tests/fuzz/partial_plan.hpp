// SPDX-License-Identifier: BSD-3-Clause
// For partial_fuzz.cpp: random collectives and neighbours, as all ranks know them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "mpi/collectives/blocks/block_channel.hpp"

namespace imbrex::test {

using mpi::blocks::Kind;
using Random = std::mt19937_64;

constexpr int ranks = 4;
constexpr int comms = 2;
constexpr int parts_most = 5;
constexpr int edges_most = 4;  // from one rank to another one
constexpr int blocks_most = ranks * edges_most;
constexpr int tag_max = 32767;

inline int below(Random& random, const int end) {
  return static_cast<int>(random() % static_cast<unsigned>(end));
}
inline std::size_t at(const int index) { return static_cast<std::size_t>(index); }

// ---- what all ranks know -----------------------------------------------------------------------

enum class Trouble { none, messages, death };
enum class Bad { error, too_long, withdrawn };  // a message

// The block `out` that leaves `from` arrives at `to` as its block `in`.
struct Edge {
  int from;
  int out;
  int to;
  int in;
  int number;  // among those from `from` to `to`, by `out`: it is in the tags of its parts
};

struct Topology {
  std::vector<int> sizes;  // of a grid; none: a graph
  std::vector<int> periods;
  std::vector<Edge> edges;
  std::array<std::vector<int>, ranks> sources;       // by rank: of a graph
  std::array<std::vector<int>, ranks> destinations;
  int in = 0;  // blocks of rank 0, with those beyond a border
  int out = 0;

  [[nodiscard]] int count(const int from, const int to) const {
    return static_cast<int>(std::ranges::count_if(
        edges, [&](const Edge& it) { return it.from == from && it.to == to; }));
  }
  void add(Edge edge) {
    edge.number = count(edge.from, edge.to);
    edges.push_back(edge);
  }
};

// MPI: what goes to the neighbour below arrives there as from the one above.
inline Topology make_grid(Random& random) {
  static const std::vector<std::vector<int>> all{{4},       {2, 2},    {4, 1},
                                                 {1, 2, 2}, {2, 1, 2}, {1, 4, 1}};
  Topology grid;
  grid.sizes = all[random() % all.size()];
  for (std::size_t i = 0; i < grid.sizes.size(); ++i) grid.periods.push_back(below(random, 3) != 0);
  for (int rank = 0; rank < ranks; ++rank) {
    int step = ranks;
    for (std::size_t i = 0; i < grid.sizes.size(); ++i) {
      step /= grid.sizes[i];
      const int place = rank / step % grid.sizes[i];
      for (const int way : {0, 1}) {  // below, above
        const int there = place + (way == 0 ? -1 : 1);
        const int inside = (there + grid.sizes[i]) % grid.sizes[i];
        if (there != inside && grid.periods[i] == 0) continue;
        const int block = 2 * static_cast<int>(i);
        const int other = rank + (inside - place) * step;
        grid.add({rank, block + way, other, block + 1 - way, 0});
      }
    }
  }
  grid.in = grid.out = 2 * static_cast<int>(grid.sizes.size());
  return grid;
}

// MPI: of the edges from one rank to another one the k-th here is the k-th there.
inline Topology make_graph(Random& random) {
  Topology graph;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      for (int i = std::max(0, below(random, edges_most + 2) - 1); i > 0; --i) {
        graph.sources[at(to)].push_back(from);
        graph.destinations[at(from)].push_back(to);
      }
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    std::ranges::shuffle(graph.sources[at(rank)], random);
    std::ranges::shuffle(graph.destinations[at(rank)], random);
  }
  for (int from = 0; from < ranks; ++from) {
    std::array<int, ranks> after{};  // by rank: where the next edge from here may be
    int out = 0;
    for (const int to : graph.destinations[at(from)]) {
      int& in = after[at(to)];
      while (graph.sources[at(to)][at(in)] != from) ++in;
      graph.add({from, out++, to, in++, 0});
    }
  }
  graph.in = static_cast<int>(graph.sources[0].size());
  graph.out = static_cast<int>(graph.destinations[0].size());
  return graph;
}

struct Plan {
  const Topology* topology = nullptr;  // of the second communicator
  int number = 0;  // of all
  std::string name;
  int comm = 0;
  int index = 0;  // on its communicator
  Kind kind = Kind::alltoall;
  int root = 0;
  int parts = 1;
  int width = 1;  // numbers of an element
  bool hold = false;
  std::array<std::array<int, ranks>, ranks> elements{};  // of the block [from][to]
  int bad_source = -1;  // whose part `bad_part` for rank 0 fails
  int bad_part = -1;
  Bad how = Bad::error;
  int kept_part = -1;  // that rank 0 holds, and never sends

  // Set by rank 0 before what is held goes, and by the other ranks before what it passes on comes.
  std::array<std::array<std::atomic<bool>, parts_most * edges_most>, ranks> may_leave{};

  // Parts from one rank to another one are counted through all edges: part p of edge e is
  // e * parts + p. Without neighbours there is one edge.
  [[nodiscard]] bool of_neighbors() const {
    return kind == Kind::neighbor_alltoall || kind == Kind::neighbor_allgather;
  }
  [[nodiscard]] int all_parts(const int source, const int destination) const {
    return parts * (of_neighbors() ? topology->count(source, destination) : 1);
  }
  [[nodiscard]] int from(const int rank) const { return kind == Kind::broadcast ? root : rank; }
  [[nodiscard]] int to(const int rank) const {
    const bool has_many = kind == Kind::alltoall || kind == Kind::scatter ||
                          kind == Kind::neighbor_alltoall;
    return has_many ? rank : 0;
  }
  [[nodiscard]] int edge_of(const int part) const {
    return kind == Kind::neighbor_alltoall ? part / parts : 0;
  }
  [[nodiscard]] int count(const int source, const int destination, const int part) const {
    return elements[at(from(source))][at((to(destination) + edge_of(part)) % ranks)];
  }
  // Returns the range of a part, in numbers of its block.
  [[nodiscard]] std::pair<int, int> range(const int source, const int destination,
                                          const int part) const {
    const int all = count(source, destination, part);
    const int of_block = part % parts;
    return {all * of_block / parts * width, all * (of_block + 1) / parts * width};
  }
  [[nodiscard]] int value(const int source, const int destination, const int part,
                          const int i) const {
    return number * 1'000'003 + from(source) * 70'001 + to(destination) * 9'001 +
           edge_of(part) * 1'009 + i;
  }
  [[nodiscard]] std::vector<std::byte> bytes(const int source, const int destination,
                                             const int part) const {
    const auto [first, end] = range(source, destination, part);
    std::vector<int> values;
    for (int i = first; i < end; ++i) values.push_back(value(source, destination, part, i));
    std::vector<std::byte> all(values.size() * sizeof(int));
    if (!all.empty()) std::memcpy(all.data(), values.data(), all.size());
    return all;
  }

  // The ranks that send parts to rank 0, and the ranks to which it sends, except itself.
  [[nodiscard]] std::vector<int> sources() const {
    switch (kind) {
      case Kind::alltoall: case Kind::allgather: return {1, 2, 3};
      case Kind::gather: return root == 0 ? std::vector{1, 2, 3} : std::vector<int>{};
      case Kind::scatter: return root == 0 ? std::vector<int>{} : std::vector{root};
      case Kind::broadcast: return root == 0 ? std::vector<int>{} : std::vector{ranks - 1};
      case Kind::allreduce: return {};
      default: return neighbors([this](const int rank) { return topology->count(rank, 0); });
    }
  }
  [[nodiscard]] std::vector<int> destinations() const {
    switch (kind) {
      case Kind::alltoall: case Kind::allgather: return {1, 2, 3};
      case Kind::gather: return root == 0 ? std::vector<int>{} : std::vector{root};
      case Kind::scatter: return root == 0 ? std::vector{1, 2, 3} : std::vector<int>{};
      case Kind::broadcast: return root == 1 ? std::vector<int>{} : std::vector{1};
      case Kind::allreduce: return {};
      default: return neighbors([this](const int rank) { return topology->count(0, rank); });
    }
  }
  template <class Count>
  static std::vector<int> neighbors(const Count count) {
    std::vector<int> all;
    for (int rank = 1; rank < ranks; ++rank) {
      if (count(rank) != 0) all.push_back(rank);
    }
    return all;
  }
  [[nodiscard]] bool is_bad(const int source, const int part) const {
    return source == bad_source && part == bad_part;
  }
  // Rank 0 passes on what comes.
  [[nodiscard]] bool passes_on() const { return kind == Kind::broadcast && root != 0; }
  // Rank 0 has to say that it does not send this.
  [[nodiscard]] bool withdraws(const int part) const {
    return part % parts == kept_part || (passes_on() && is_bad(ranks - 1, part));
  }
};
using Plans = std::vector<std::unique_ptr<Plan>>;

inline Plans make_plans(Random& random, const Topology& topology, const int count,
                        const Trouble trouble) {
  Plans plans;
  std::array<int, comms> on{};
  for (int number = 0; number < count; ++number) {
    auto plan = std::make_unique<Plan>();
    plan->topology = &topology;
    plan->number = number;
    plan->name = "collective " + std::to_string(number);
    plan->comm = below(random, 3) == 0 ? 1 : 0;
    plan->index = on[at(plan->comm)]++;
    plan->kind = static_cast<Kind>(below(random, 6));
    if (plan->comm == 1 && below(random, 2) == 0) {
      plan->kind = below(random, 2) == 0 ? Kind::neighbor_alltoall : Kind::neighbor_allgather;
    }
    plan->root = below(random, ranks);
    plan->parts = 1 + below(random, parts_most);
    plan->width = 1 + below(random, 2);
    plan->hold = plan->kind != Kind::allreduce && below(random, 2) == 0;
    constexpr std::array sizes{0, 1, 3, 8, 60};
    for (auto& row : plan->elements) {
      for (int& each : row) each = sizes[random() % sizes.size()];
    }
    const std::vector<int> sources = plan->sources();
    if (trouble == Trouble::messages && below(random, 4) == 0 && !sources.empty()) {
      plan->bad_source = sources[random() % sources.size()];
      plan->bad_part = below(random, plan->all_parts(plan->bad_source, 0));
      plan->how = static_cast<Bad>(below(random, 3));
    }
    if (trouble == Trouble::messages && plan->hold && !plan->passes_on() && below(random, 3) == 0) {
      plan->kept_part = below(random, plan->parts);
    }
    for (auto& row : plan->may_leave) {
      for (auto& each : row) each.store(!plan->hold && !plan->passes_on());
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace imbrex::test
