// SPDX-License-Identifier: BSD-3-Clause
#include "tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace uts {
namespace {

constexpr double two_31 = 2147483648.0;
constexpr std::uint32_t value_end = 1U << 31;
constexpr std::uint32_t rules_max = 1024;  // 0.7 MB

constexpr Parameters geometric(Shape shape, int depth, double children, std::int32_t seed) {
  Parameters parameters;
  parameters.shape = shape;
  parameters.depth = depth;
  parameters.root_children = children;
  parameters.seed = seed;
  return parameters;
}

constexpr Parameters binomial(double root, double q, int m, std::int32_t seed) {
  Parameters parameters;
  parameters.type = Type::binomial;
  parameters.root_children = root;
  parameters.binomial_q = q;
  parameters.binomial_m = m;
  parameters.seed = seed;
  return parameters;
}

constexpr Parameters hybrid(Parameters parameters, double q, int m) {
  parameters.type = Type::hybrid;
  parameters.binomial_q = q;
  parameters.binomial_m = m;
  return parameters;
}

// Gives options that a type does not use their default; -g changes no tree.
Parameters relevant(const Parameters& given) {
  Parameters parameters = given;
  const Parameters unused;
  parameters.granularity = unused.granularity;
  if (given.type != Type::hybrid) parameters.hybrid_shift = unused.hybrid_shift;
  if (given.type == Type::binomial || given.type == Type::balanced) parameters.shape = unused.shape;
  if (given.type == Type::binomial) parameters.depth = unused.depth;
  if (given.type == Type::geometric || given.type == Type::balanced) {
    parameters.binomial_q = unused.binomial_q;
    parameters.binomial_m = unused.binomial_m;
  }
  return parameters;
}

}  // namespace

std::span<const KnownTree> known_trees() noexcept {
  static constexpr KnownTree trees[] = {
      {"T1", geometric(Shape::fixed, 10, 4, 19), {4130071, 3305118, 10}},
      {"T2", geometric(Shape::cyclic, 16, 6, 502), {4117769, 2342762, 81}},
      {"T3", binomial(2000, 0.124875, 8, 42), {4112897, 3599034, 1572}},
      {"T4", hybrid(geometric(Shape::linear, 16, 6, 1), 0.234375, 4), {4132453, 3108986, 134}},
      {"T5", geometric(Shape::linear, 20, 4, 34), {4147582, 2181318, 20}},
      {"T1L", geometric(Shape::fixed, 13, 4, 29), {102181082, 81746377, 13}},
      {"T3L", binomial(2000, 0.200014, 5, 7), {111345631, 89076904, 17844}},
      {"T1XXL", geometric(Shape::fixed, 15, 4, 19), {4230646601, 0, 15}},
      {"T3XXL", binomial(2000, 0.499995, 2, 316), {2793220501, 0, 99049}},
  };
  return trees;
}

const KnownTree* find_known(const Parameters& parameters) noexcept {
  const auto trees = known_trees();
  const auto found = std::ranges::find(trees, relevant(parameters), &KnownTree::parameters);
  return found == trees.end() ? nullptr : &*found;
}

void check(const Parameters& parameters) {
  const auto refuse = [](bool wrong, const std::string& what) {
    if (wrong) throw InputError(what);
  };
  constexpr double root_max = 1e7;  // their nodes are in memory at once
  const bool bin = parameters.type == Type::binomial;
  const bool geo = parameters.type == Type::geometric || parameters.type == Type::hybrid;
  const double b = parameters.root_children;
  refuse(!(b > 0 && b <= root_max),
         fmt::format("-b {}: the number of children must be above 0 and at most {:.0f}", b,
                     root_max));
  refuse(!bin && (parameters.depth < 1 || parameters.depth > 1'000'000),
         fmt::format("-d {}: a depth from 1 to 1000000 is needed", parameters.depth));
  refuse(geo && parameters.shape == Shape::expdec && parameters.depth < 2,
         "-a 1 -d 1: the exponentially decreasing shape needs a depth of 2 or more");
  refuse(!(parameters.binomial_q >= 0 && parameters.binomial_q <= 1),
         fmt::format("-q {}: a probability from 0 to 1 is needed", parameters.binomial_q));
  refuse(parameters.binomial_m < 0 || parameters.binomial_m > static_cast<int>(children_max),
         fmt::format("-m {}: a node has 0 to {} children", parameters.binomial_m, children_max));
  // T3L has 1.00007, and ends by its seed.
  constexpr double mean_max = 1.01;
  const double mean = parameters.binomial_q * parameters.binomial_m;
  refuse((bin || parameters.type == Type::hybrid) && mean > mean_max,
         fmt::format("-q {} -m {}: with q m = {:.6g} children on average the tree would never end; "
                     "take {} at most", parameters.binomial_q, parameters.binomial_m, mean,
                     mean_max));
  refuse(!(parameters.hybrid_shift >= 0 && parameters.hybrid_shift <= 1),
         fmt::format("-f {}: a share from 0 to 1 is needed", parameters.hybrid_shift));
  refuse(parameters.granularity < 1,
         fmt::format("-g {}: at least one hash a node", parameters.granularity));
}

Rule::Rule(const std::uint32_t flip, const std::uint32_t scale) noexcept
    : flip_(flip), scale_(scale) {
  std::ranges::fill(thresholds_, never);
  std::ranges::fill(first_, std::uint8_t{0});
}

Rule Rule::constant(const std::uint32_t children) noexcept {
  Rule rule(0, children);
  rule.thresholds_[0] = 0;
  rule.fill_buckets();
  return rule;
}

Rule Rule::below(const std::uint64_t threshold, const std::uint32_t children) noexcept {
  Rule rule(value_end - 1, children);
  if (threshold > 0) rule.thresholds_[0] = static_cast<std::uint32_t>(value_end - threshold);
  rule.fill_buckets();
  return rule;
}

Rule Rule::count(const std::span<const std::uint32_t> thresholds) noexcept {
  Rule rule(0, 1);
  std::ranges::copy(thresholds, rule.thresholds_);
  rule.fill_buckets();
  return rule;
}

void Rule::fill_buckets() noexcept {
  std::uint8_t number = 0;
  for (std::uint32_t bucket = 0; bucket < std::size(first_); ++bucket) {
    while (thresholds_[number] <= bucket << bucket_shift) ++number;
    first_[bucket] = number;
  }
}

Tree::Tree(const Parameters& parameters) : parameters_(parameters) {
  // The levels from here on have one rule.
  std::uint64_t last = 1;
  const auto depth = static_cast<std::uint64_t>(parameters.depth);
  switch (parameters.type) {
    case Type::binomial: break;
    case Type::balanced: last = depth; break;
    case Type::hybrid:
    case Type::geometric:
      last = parameters.shape == Shape::expdec ? UINT64_MAX
             : parameters.shape == Shape::cyclic ? 5 * depth + 1 : depth;
      if (parameters.type == Type::hybrid) {
        last = static_cast<std::uint64_t>(std::ceil(parameters.hybrid_shift * parameters.depth));
      }
  }
  constant_below_ = last < rules_max;
  const std::uint64_t end = constant_below_ ? last + 1 : rules_max;
  rules_.reserve(end);
  for (std::uint32_t i = 0; i < end; ++i) {
    const bool same = parameters.type != Type::binomial && parameters.shape == Shape::fixed &&
                      i >= 1 && i < last;
    rules_.push_back(same ? rules_.front() : make_rule(i));
  }
}

std::uint32_t Tree::root_children() const noexcept {
  if (parameters_.type == Type::binomial) {
    return static_cast<std::uint32_t>(std::floor(parameters_.root_children));
  }
  return children(root_state(parameters_.seed).value(), 0);
}

bool Tree::is_geometric(const std::uint32_t depth) const noexcept {
  return parameters_.type == Type::geometric ||
         (parameters_.type == Type::hybrid &&
          depth < parameters_.hybrid_shift * parameters_.depth);
}

double Tree::mean_children(const std::uint32_t depth) const noexcept {
  const double root = parameters_.root_children;
  const auto at = static_cast<double>(depth);
  const auto whole = static_cast<double>(parameters_.depth);
  if (depth == 0) return root;
  switch (parameters_.shape) {
    case Shape::linear: return root * (1.0 - at / whole);
    case Shape::expdec: return root * std::pow(at, -std::log(root) / std::log(whole));
    case Shape::cyclic:
      return at > 5 * whole ? 0 : std::pow(root, std::sin(2.0 * 3.141592653589793 * at / whole));
    case Shape::fixed: return at < whole ? root : 0;
  }
  return 0;
}

std::uint32_t Tree::children_by_formula(const std::uint32_t value,
                                        const std::uint32_t depth) const noexcept {
  if (parameters_.type == Type::balanced) {
    return depth < static_cast<std::uint32_t>(parameters_.depth)
               ? static_cast<std::uint32_t>(parameters_.root_children) : 0;
  }
  const double u = value / two_31;
  if (!is_geometric(depth)) {
    return u < parameters_.binomial_q ? static_cast<std::uint32_t>(parameters_.binomial_m) : 0;
  }
  const double mean = mean_children(depth);
  if (!(mean > 0)) return 0;  // below the depth of a linear shape, too
  const double p = 1.0 / (1.0 + mean);
  const double number = std::floor(std::log(1 - u) / std::log(1 - p));
  return number < children_max ? static_cast<std::uint32_t>(number) : children_max;
}

// The least random number with so many children; value_end: there is none. The formula ascends:
// 1 - u is exact, and neighbours' logarithms differ by 2^-31 at least, which no rounding turns.
std::uint32_t Tree::threshold_of(const std::uint32_t children, const std::uint32_t depth) const {
  const double mean = mean_children(depth);
  const double guess = two_31 * (1 - std::pow(mean / (1 + mean), children));
  constexpr std::uint32_t near = 64;
  auto low = static_cast<std::uint32_t>(guess);
  low = low > near ? low - near : 0;
  std::uint32_t high = std::min(value_end, low + 2 * near);
  const auto enough = [&](std::uint32_t value) {
    return value == value_end || children_by_formula(value, depth) >= children;
  };
  if (enough(low)) low = 0;
  if (!enough(high)) high = value_end;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (enough(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

Rule Tree::make_rule(const std::uint32_t depth) const {
  if (!is_geometric(depth)) {
    if (parameters_.type == Type::balanced) return Rule::constant(children_by_formula(0, depth));
    // u < q, with both sides times 2^31, which is exact.
    const auto threshold = static_cast<std::uint64_t>(std::ceil(parameters_.binomial_q * two_31));
    return Rule::below(threshold, static_cast<std::uint32_t>(parameters_.binomial_m));
  }
  std::vector<std::uint32_t> thresholds;
  if (mean_children(depth) > 0) {
    for (std::uint32_t children = 1; children <= children_max; ++children) {
      const std::uint32_t threshold = threshold_of(children, depth);
      if (threshold == value_end) break;
      thresholds.push_back(threshold);
    }
  }
  return Rule::count(thresholds);
}

}  // namespace uts
