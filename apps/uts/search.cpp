// SPDX-License-Identifier: BSD-3-Clause
#include "search.hpp"

#include <algorithm>
#include <cstring>

#include "../tiled/sleep.hpp"

namespace uts {

void add(Tally& sum, const Tally& more) noexcept {
  sum.counts.nodes += more.counts.nodes;
  sum.counts.leaves += more.counts.leaves;
  sum.counts.depth = std::max(sum.counts.depth, more.counts.depth);
  sum.work_s += more.work_s;
  sum.overhead_s += more.overhead_s;
  sum.search_s += more.search_s;
  sum.idle_s += more.idle_s;
  sum.steals += more.steals;
  sum.failed += more.failed;
}

void Stack::push(const std::span<const Node> nodes) {
  if (nodes.empty()) return;
  std::memcpy(room(nodes.size()), nodes.data(), nodes.size_bytes());
  end_ += nodes.size();
}

void Stack::pop(const std::span<Node> out) noexcept {
  if (out.empty()) return;
  end_ -= out.size();
  std::memcpy(out.data(), nodes_.get() + end_, out.size_bytes());
  if (begin_ == end_) begin_ = end_ = 0;
}

void Stack::give(const std::size_t count, std::vector<Node>& out) {
  out.insert(out.end(), nodes_.get() + begin_, nodes_.get() + begin_ + count);
  begin_ += count;
  if (begin_ == end_) begin_ = end_ = 0;
}

Node* Stack::room(const std::size_t count) {
  if (end_ + count > capacity_) {
    const std::size_t needed = size() + count;
    // The place of nodes that were given away is used again if it is half of the memory: less could
    // make moving cost too much.
    if (needed > capacity_ / 2) {
      capacity_ = std::max<std::size_t>(2 * needed, 4096);
      auto larger = std::make_unique_for_overwrite<Node[]>(capacity_);
      if (!empty()) std::memcpy(larger.get(), nodes_.get() + begin_, size() * sizeof(Node));
      nodes_ = std::move(larger);
    } else {
      std::memmove(nodes_.get(), nodes_.get() + begin_, size() * sizeof(Node));
    }
    end_ -= begin_;
    begin_ = 0;
  }
  return nodes_.get() + end_;
}

// Nodes that sleep take long enough to be expanded one by one; and who looks often at messages
// shall not be kept from it.
Search::Search(const Tree& tree, const Settings& settings, apps::Progress& progress)
    : tree_(tree), expand_(expand_with(settings.hash)), node_s_(settings.node_s),
      batch_(settings.node_s > 0 ? 1
             : settings.interval == 0
                 ? batch_max
                 : std::clamp<std::size_t>(static_cast<std::size_t>(settings.interval) / 4, 1,
                                           batch_max)),
      progress_(progress) {}

void Search::count_root(const Node& root) noexcept {
  ++counts_.nodes;
  if (root.children == 0) ++counts_.leaves;
}

void Search::begin(Stack& stack) {
  const Node root = root_of(tree_);
  count_root(root);
  if (root.children > 0) stack.push({&root, 1});
}

void Search::run(Stack& stack, const std::uint64_t nodes) {
  const std::uint64_t start = counts_.nodes;
  while (!stack.empty() && counts_.nodes - start < nodes) {
    Node buffer[batch_max];
    const std::span<Node> parents(buffer, std::min(batch_, stack.size()));
    stack.pop(parents);
    Node* const begin = stack.room(children_of(parents) + 1);
    stack.grow(expand(parents, begin));
  }
}

Node* Search::expand(const std::span<const Node> parents, Node* const out) {
  const std::size_t children = children_of(parents);
  Node* const end = expand_(tree_, parents, out);
  counts_.nodes += children;
  counts_.leaves += children - static_cast<std::size_t>(end - out);
  for (const Node& parent : parents) {
    counts_.depth = std::max<std::uint64_t>(counts_.depth, parent.depth + 1);
  }
  if (counts_.nodes - published_ >= 4096) publish();
  if (node_s_ > 0) {
    // A sleep is not shorter: the system needs some 50 us of its own for each.
    constexpr double sleep_min_s = 500e-6;
    owed_s_ += node_s_ * static_cast<double>(children);
    if (owed_s_ >= sleep_min_s) {
      tiled::sleep_precisely(owed_s_);
      owed_s_ = 0;
    }
  }
  return end;
}

void Search::publish() {
  progress_.add(static_cast<std::int64_t>(counts_.nodes - published_));
  published_ = counts_.nodes;
}

}  // namespace uts
