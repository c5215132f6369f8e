// SPDX-License-Identifier: BSD-3-Clause
// What expand.cpp and hash_x86.cpp compile, each with its own hash of several states at once.
#pragma once

#include "expand.hpp"

// The processor for which the functions are compiled, as an attribute. A file may define it before
// it includes this header.
#ifndef UTS_TARGET
#define UTS_TARGET
#endif

namespace uts {

// Hashes alone are fastest with four or five at once, by 5 %; searches with three, by 5 to 8 %
// (Zen 4): more do not fit into the processor's window beside what is done with their results.
constexpr int lanes = 3;

// `Hashes` has `static void run(const State* const (&parents)[lanes],
// const std::uint32_t (&children)[lanes], State (&out)[lanes])`. Inlined, and for its processor.
template <class Hashes>
class Expander {
 public:
  UTS_TARGET [[gnu::always_inline]] Expander(const Tree& tree, Node* out) noexcept
      : tree_(tree), out_(out), times_(tree.parameters().granularity) {}

  UTS_TARGET [[gnu::always_inline]] Node* run(std::span<const Node> parents) noexcept {
    for (const Node& parent : parents) {
      const Rule* const rule = tree_.rule(parent.depth + 1);
      for (std::uint32_t child = 0; child < parent.children; ++child) {
        states_[filled_] = &parent.state;
        numbers_[filled_] = child;
        rules_[filled_] = rule;
        depths_[filled_] = parent.depth + 1;
        if (++filled_ == lanes) flush();
      }
    }
    if (filled_ > 0) {
      for (int lane = filled_; lane < lanes; ++lane) {
        states_[lane] = states_[0];
        numbers_[lane] = 0;
      }
      flush();
    }
    return out_;
  }

 private:
  UTS_TARGET [[gnu::always_inline]] void flush() noexcept {
    State hashed[lanes];
    for (int time = 0; time < times_; ++time) Hashes::run(states_, numbers_, hashed);
    for (int lane = 0; lane < filled_; ++lane) {
      const std::uint32_t value = hashed[lane].value();
      const std::uint32_t children = rules_[lane] != nullptr
                                         ? rules_[lane]->children(value)
                                         : tree_.children_by_formula(value, depths_[lane]);
      *out_ = {hashed[lane], depths_[lane], children};
      out_ += children != 0 ? 1 : 0;  // the next overwrites a leaf: no branch that is hard to guess
    }
    filled_ = 0;
  }

  const Tree& tree_;
  Node* out_;
  const int times_;
  int filled_ = 0;
  const State* states_[lanes];
  std::uint32_t numbers_[lanes];
  const Rule* rules_[lanes];
  std::uint32_t depths_[lanes];
};

}  // namespace uts
