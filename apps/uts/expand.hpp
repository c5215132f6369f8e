// SPDX-License-Identifier: BSD-3-Clause
// Makes the children of nodes: the computation of the benchmark, the same for all variants.
//
// A leaf is hashed and counted, and becomes no node: a node has children. The children of all given
// nodes are hashed several at a time, of all parents together, so that the latencies of the
// instructions for SHA-1 overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tree.hpp"

namespace uts {

struct Node {
  State state;
  std::uint32_t depth;
  std::uint32_t children;  // one at least
};
static_assert(sizeof(Node) == 28);

// One root, counted; without children it is a leaf.
[[nodiscard]] Node root_of(const Tree& tree) noexcept;

// Returns the number of children that the nodes have together.
[[nodiscard]] inline std::size_t children_of(std::span<const Node> nodes) noexcept {
  std::size_t sum = 0;
  for (const Node& node : nodes) sum += node.children;
  return sum;
}

// Children that are nodes are written from `out` on, those of the last node last; its end is
// returned. REQUIRES: room for children_of(parents) nodes and one more; no overlap.
using Expand = Node* (*)(const Tree& tree, std::span<const Node> parents, Node* out) noexcept;

// The way in which a processor computes SHA-1.
enum class Hash { plain, instructions };
[[nodiscard]] bool has_instructions() noexcept;
// REQUIRES: has_instructions(), for those.
[[nodiscard]] Expand expand_with(Hash hash) noexcept;
[[nodiscard]] inline Hash best_hash() noexcept {
  return has_instructions() ? Hash::instructions : Hash::plain;
}

// ---- for expand.cpp and hash_x86.cpp -----------------------------------------------------------

[[nodiscard]] bool processor_has_sha() noexcept;
[[nodiscard]] Expand expand_with_sha() noexcept;

}  // namespace uts
