// SPDX-License-Identifier: BSD-3-Clause
// What every variant does between its messages: a stack of nodes, a search that expands its top,
// and what is counted meanwhile. Knows no other thread and no other rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../harness/progress.hpp"
#include "expand.hpp"

namespace uts {

// The way in which the program searches, by the command line; equal on every rank.
enum class Victims { ring, random };
enum class Steal { chunk, half, none };
struct Settings {
  int chunk = 0;            // -c: nodes that are given away at once; 0: as the variant chooses
  int interval = 0;         // -i: nodes between two looks at messages; 0: the same
  Victims victims = Victims::ring;
  Steal steal = Steal::chunk;  // none: the ranks divide the root's children, and stay apart
  Hash hash = Hash::plain;
  double node_s = 0;        // seconds that a node takes beside its hash; 0: it sleeps not
};

// The tally of one searcher: a rank, a thread, or a worker.
struct Tally {
  Counts counts;
  double work_s = 0;      // in nodes
  double overhead_s = 0;  // in messages of others, while there was work
  double search_s = 0;    // without work
  double idle_s = 0;      // before and after
  std::uint64_t steals = 0;  // from other ranks
  std::uint64_t failed = 0;  // requests to them that brought nothing
};

// Adds counts and steals, and takes the greater depth.
void add(Tally& sum, const Tally& more) noexcept;

[[nodiscard]] inline double seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Nodes whose children are not made yet; the top is the youngest. It grows as it needs to.
class Stack {
 public:
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }

  void push(std::span<const Node> nodes);
  // The youngest `out.size()`. REQUIRES: there are as many.
  void pop(std::span<Node> out) noexcept;
  // The oldest `count`, appended to `out`. REQUIRES: there are as many.
  void give(std::size_t count, std::vector<Node>& out);

  // The memory where `count` nodes can be written; grow() says how far that was done.
  [[nodiscard]] Node* room(std::size_t count);
  void grow(const Node* end) noexcept { end_ = static_cast<std::size_t>(end - nodes_.get()); }

 private:
  std::unique_ptr<Node[]> nodes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

class Search {
 public:
  static constexpr std::size_t batch_max = 32;

  // From time to time it tells `progress` how many nodes it has searched.
  Search(const Tree& tree, const Settings& settings, apps::Progress& progress);

  // Until the stack is empty, or so many nodes and a few are searched.
  void run(Stack& stack, std::uint64_t nodes);
  // Expands and counts; the rest as for Expand.
  [[nodiscard]] Node* expand(std::span<const Node> parents, Node* out);
  // Returns how many nodes should be expanded at once by a searcher that has them: batch_max at
  // most.
  [[nodiscard]] std::size_t batch() const noexcept { return batch_; }

  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  // Counts the root of the tree, which no expansion counts.
  void count_root(const Node& root) noexcept;
  // Counts the root of the tree, and puts it on the stack unless it is a leaf.
  void begin(Stack& stack);

 private:
  void publish();

  const Tree& tree_;
  const Expand expand_;
  const double node_s_;
  const std::size_t batch_;
  double owed_s_ = 0;  // of sleep
  Counts counts_;
  std::uint64_t published_ = 0;
  apps::Progress& progress_;
};

}  // namespace uts
