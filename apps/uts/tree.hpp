// SPDX-License-Identifier: BSD-3-Clause
// The trees of the benchmark: how many children a node has, from its random number and its depth.
// Knows nothing of how they are searched.
//
// Olivier et al., UTS: An Unbalanced Tree Search Benchmark (LCPC 2006). The numbers of children
// are those of its reference program to the last node. Where that computes
// floor(log(1 - u) / log(1 - p)), there are thresholds here, found by that formula.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../harness/input_error.hpp"
#include "sha1.hpp"

namespace uts {

using apps::InputError;

enum class Type : int { binomial, geometric, hybrid, balanced };
// The way in which the mean number of children of a geometric tree changes with the depth.
enum class Shape : int { linear, expdec, cyclic, fixed };

// The options of the reference's command line; an option that the type does not use is ignored.
struct Parameters {
  Type type = Type::geometric;     // -t
  Shape shape = Shape::linear;     // -a
  int depth = 6;                   // -d: of geometric trees
  double root_children = 4;        // -b: mean; for a binomial tree the root's number
  std::int32_t seed = 0;           // -r
  double binomial_q = 15.0 / 64.0; // -q: the chance that a node of a binomial tree has children
  int binomial_m = 4;              // -m: and how many
  double hybrid_shift = 0.5;       // -f: a hybrid tree is geometric above this share of -d
  int granularity = 1;             // -g: hashes a node

  bool operator==(const Parameters&) const = default;
};

// Throws InputError, which names the option.
void check(const Parameters& parameters);

struct Counts {
  std::uint64_t nodes = 0;
  std::uint64_t leaves = 0;
  std::uint64_t depth = 0;  // the greatest

  bool operator==(const Counts&) const = default;
};

struct KnownTree {
  const char* name;
  Parameters parameters;
  Counts counts;  // no leaves: they are not known
};
[[nodiscard]] std::span<const KnownTree> known_trees() noexcept;
// The tree of these parameters, as far as they matter; null if it is none of those.
[[nodiscard]] const KnownTree* find_known(const Parameters& parameters) noexcept;

// The greatest number of children of a node that is not a root (and not of a balanced tree).
constexpr std::uint32_t children_max = 100;

// The number of children by the formula for the nodes of one depth.
class Rule {
 public:
  static constexpr std::uint32_t never = UINT32_MAX;  // above every random number

  // `children` whatever the random number.
  static Rule constant(std::uint32_t children) noexcept;
  // `children` for random numbers below `threshold`, else none.
  static Rule below(std::uint64_t threshold, std::uint32_t children) noexcept;
  // Gives as many children as there are thresholds not above the random number; the thresholds
  // ascend.
  static Rule count(std::span<const std::uint32_t> thresholds) noexcept;

  [[nodiscard]] std::uint32_t children(std::uint32_t value) const noexcept {
    const std::uint32_t x = value ^ flip_;
    std::uint32_t number = first_[x >> bucket_shift];
    number += x >= thresholds_[number] ? 1 : 0;
    while (x >= thresholds_[number]) ++number;  // in few buckets
    return number * scale_;
  }

  [[nodiscard]] std::span<const std::uint32_t> thresholds() const noexcept { return thresholds_; }

 private:
  static constexpr int bucket_shift = 23;

  Rule(std::uint32_t flip, std::uint32_t scale) noexcept;
  void fill_buckets() noexcept;

  std::uint32_t flip_;   // all bits of a number below 2^31, if small numbers have children
  std::uint32_t scale_;
  std::uint32_t thresholds_[children_max + 2];  // the rest is `never`
  std::uint8_t first_[256];  // by the upper bits of a number: the thresholds below all such
};

// Thread safety: any thread; nothing changes.
class Tree {
 public:
  // REQUIRES: check(parameters).
  explicit Tree(const Parameters& parameters);

  [[nodiscard]] const Parameters& parameters() const noexcept { return parameters_; }
  [[nodiscard]] std::uint32_t root_children() const noexcept;

  // Null: beyond the tables, ask children_by_formula().
  [[nodiscard]] const Rule* rule(std::uint32_t depth) const noexcept {
    if (depth < rules_.size()) return &rules_[depth];
    return constant_below_ ? &rules_.back() : nullptr;
  }
  [[nodiscard]] std::uint32_t children(std::uint32_t value, std::uint32_t depth) const noexcept {
    const Rule* const found = rule(depth);
    return found != nullptr ? found->children(value) : children_by_formula(value, depth);
  }
  // Computes by logarithms, as the tree is defined. REQUIRES: the node is not the root of a
  // binomial tree.
  [[nodiscard]] std::uint32_t children_by_formula(std::uint32_t value,
                                                  std::uint32_t depth) const noexcept;

 private:
  [[nodiscard]] bool is_geometric(std::uint32_t depth) const noexcept;
  [[nodiscard]] double mean_children(std::uint32_t depth) const noexcept;
  [[nodiscard]] std::uint32_t threshold_of(std::uint32_t children, std::uint32_t depth) const;
  [[nodiscard]] Rule make_rule(std::uint32_t depth) const;

  Parameters parameters_;
  std::vector<Rule> rules_;      // by depth
  bool constant_below_ = false;  // the last one is for all greater depths, too
};

}  // namespace uts
