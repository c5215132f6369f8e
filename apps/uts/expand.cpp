// SPDX-License-Identifier: BSD-3-Clause
#include "expand.hpp"

#include "lanes.hpp"

namespace uts {
namespace {

struct PlainHashes {
  static void run(const State* const (&parents)[lanes], const std::uint32_t (&children)[lanes],
                  State (&out)[lanes]) noexcept {
    for (int lane = 0; lane < lanes; ++lane) {
      out[lane] = child_state(*parents[lane], children[lane]);
    }
  }
};

Node* expand_plain(const Tree& tree, const std::span<const Node> parents, Node* out) noexcept {
  return Expander<PlainHashes>(tree, out).run(parents);
}

}  // namespace

Node root_of(const Tree& tree) noexcept {
  return {root_state(tree.parameters().seed), 0, tree.root_children()};
}

bool has_instructions() noexcept {
  static const bool has = processor_has_sha();
  return has;
}

Expand expand_with(const Hash hash) noexcept {
  return hash == Hash::instructions ? expand_with_sha() : &expand_plain;
}

}  // namespace uts
