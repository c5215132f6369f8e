// SPDX-License-Identifier: BSD-3-Clause
// IntervalTree: values by half-open intervals of addresses; finds all intervals that overlap one. A
// treap in the order of beginnings, in which each node knows the largest end below it: an access
// costs the logarithm of the number of intervals, plus the intervals found.
//
// Thread safety: none.
// Invariants:
//   (1) keys grow from left to right; a node's weight is at least that of its children.
//   (2) `last` of a node is the greatest end in its subtree.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace imbrex::task {

struct Interval {
  std::uintptr_t begin;
  std::uintptr_t end;  // above `begin`
  auto operator<=>(const Interval&) const = default;

  [[nodiscard]] bool overlaps(const Interval& other) const noexcept {
    return begin < other.end && other.begin < end;
  }
  [[nodiscard]] bool contains(const Interval& other) const noexcept {
    return begin <= other.begin && other.end <= end;
  }
};

template <class Value>
class IntervalTree {
  struct Node;
  using Link = std::unique_ptr<Node>;
  struct Node {
    Interval key;
    std::uintptr_t last;
    std::uint64_t weight;
    Link left, right;
    Value value;
  };

 public:
  // The value of exactly that interval; made if there is none. It does not move until erase().
  [[nodiscard]] Value& at(const Interval& key) {
    if (Value* const present = find(key)) return *present;
    auto node = std::make_unique<Node>(Node{key, key.end, next_weight(), nullptr, nullptr, {}});
    Value& value = node->value;
    insert(root_, std::move(node));
    ++size_;
    return value;
  }

  // The value of exactly that interval; null if there is none.
  [[nodiscard]] Value* find(const Interval& key) noexcept {
    for (Node* node = root_.get(); node != nullptr;) {
      if (node->key == key) return &node->value;
      node = (key < node->key ? node->left : node->right).get();
    }
    return nullptr;
  }

  // Calls visit(interval, value) for each overlapping interval, by growing beginning. The visit
  // must not change the tree.
  template <class Visit>
  void each_overlapping(const Interval& with, Visit visit) {
    each_overlapping(root_.get(), with, visit);
  }
  template <class Visit>
  void each(Visit visit) {
    each_overlapping(root_.get(), {0, UINTPTR_MAX}, visit);
  }

  void erase(const Interval& key) noexcept {
    if (erase(root_, key)) --size_;
  }
  void clear() noexcept {
    root_.reset();  // recursion as deep as the tree, which is flat
    size_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::uint64_t next_weight() noexcept {  // splitmix64: the same sequence in each run
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  static void update(Node& node) noexcept {
    node.last = node.key.end;
    if (node.left) node.last = std::max(node.last, node.left->last);
    if (node.right) node.last = std::max(node.last, node.right->last);
  }

  // Splits into keys below `key`, to `left`, and the other keys, to `right`.
  static void split(Link tree, const Interval& key, Link& left, Link& right) noexcept {
    if (!tree) {
      left.reset();
      right.reset();
    } else if (tree->key < key) {
      split(std::move(tree->right), key, tree->right, right);
      update(*tree);
      left = std::move(tree);
    } else {
      split(std::move(tree->left), key, left, tree->left);
      update(*tree);
      right = std::move(tree);
    }
  }
  // All keys of `left` are below those of `right`.
  [[nodiscard]] static Link join(Link left, Link right) noexcept {
    if (!left) return right;
    if (!right) return left;
    if (left->weight > right->weight) {
      left->right = join(std::move(left->right), std::move(right));
      update(*left);
      return left;
    }
    right->left = join(std::move(left), std::move(right->left));
    update(*right);
    return right;
  }

  static void insert(Link& tree, Link node) noexcept {
    if (!tree || node->weight > tree->weight) {
      Link left, right;
      split(std::move(tree), node->key, left, right);
      node->left = std::move(left);
      node->right = std::move(right);
      update(*node);
      tree = std::move(node);
      return;
    }
    Link& side = node->key < tree->key ? tree->left : tree->right;
    insert(side, std::move(node));
    update(*tree);
  }
  static bool erase(Link& tree, const Interval& key) noexcept {
    if (!tree) return false;
    if (tree->key == key) {
      tree = join(std::move(tree->left), std::move(tree->right));
      return true;
    }
    const bool erased = erase(key < tree->key ? tree->left : tree->right, key);
    update(*tree);
    return erased;
  }

  template <class Visit>
  static void each_overlapping(Node* const node, const Interval& with, Visit& visit) {
    if (node == nullptr || node->last <= with.begin) return;
    each_overlapping(node->left.get(), with, visit);
    if (node->key.begin >= with.end) return;
    if (node->key.overlaps(with)) visit(std::as_const(node->key), node->value);
    each_overlapping(node->right.get(), with, visit);
  }

  Link root_;
  std::size_t size_ = 0;
  std::uint64_t state_ = 0;
};

}  // namespace imbrex::task
