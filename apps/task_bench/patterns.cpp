// SPDX-License-Identifier: BSD-3-Clause
#include "patterns.hpp"

#include <algorithm>
#include <bit>

namespace task_bench {
namespace {

// ---- parts of the definitions ------------------------------------------------------------------

// The columns from `first` to `last`, both included, as far as the graph has them.
Set window(const Shape& shape, int first, const int last) {
  Set set;
  for (int column = std::max(first, 0); column <= std::min(last, shape.width - 1); ++column) {
    set.push_back(column);
  }
  return set;
}

// The columns, modulo the width, in order and each once.
Set wrapped(const Shape& shape, Set columns) {
  for (int& column : columns) column = (column % shape.width + shape.width) % shape.width;
  std::ranges::sort(columns);
  const auto rest = std::ranges::unique(columns);
  columns.erase(rest.begin(), rest.end());
  return columns;
}

Set inside(const Shape& shape, const Set& columns) {
  Set set;
  for (const int column : columns) {
    if (column >= 0 && column < shape.width) set.push_back(column);
  }
  const auto rest = std::ranges::unique(set);
  set.erase(rest.begin(), rest.end());
  return set;
}

Columns every_column(const Shape& shape, int) { return {0, shape.width}; }
int always_equal(const Shape&) { return 1; }

Set none(const Shape&, int, int) { return {}; }
Set own(const Shape&, int, const int column) { return {column}; }
Set all(const Shape& shape, int, int) { return window(shape, 0, shape.width - 1); }

// ---- stencils ----------------------------------------------------------------------------------

Set stencil(const Shape& shape, int, const int column) {
  return window(shape, column - 1, column + 1);
}
Set stencil_periodic(const Shape& shape, int, const int column) {
  return wrapped(shape, {column - 1, column, column + 1});
}

// ---- sweep -------------------------------------------------------------------------------------

// A sweep from one corner of a rectangle, `width` columns and as many rows as the steps allow: step
// s has the points whose row and column add up to s.
Columns diagonal(const Shape& shape, const int step) {
  const int rows = std::max(1, shape.steps - shape.width + 1);
  return {std::max(0, step - rows + 1), std::min(shape.width - 1, step) + 1};
}
Set sweep_inputs(const Shape& shape, int, const int column) {
  return window(shape, column - 1, column);
}
Set sweep_readers(const Shape& shape, int, const int column) {
  return window(shape, column, column + 1);
}

// ---- tree --------------------------------------------------------------------------------------

// A binary tree: each step has twice the columns of the step before, up to the width.
Columns level(const Shape& shape, const int step) {
  return {0, step < 30 ? std::min(shape.width, 1 << step) : shape.width};
}
Set parent(const Shape&, int, const int column) { return {column / 2}; }
Set children(const Shape& shape, int, const int column) {
  return window(shape, 2 * column, 2 * column + 1);
}

// ---- FFT ---------------------------------------------------------------------------------------

int levels(const Shape& shape) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(shape.width - 1))));
}
// Inputs of a step are so far away: 1, 2, 4 ... below the width, and again from 1.
int stride(const Shape& shape, const int step) { return 1 << (step - 1) % levels(shape); }
Set fft_inputs(const Shape& shape, const int step, const int column) {
  const int away = stride(shape, step);
  return inside(shape, {column - away, column, column + away});
}
Set fft_readers(const Shape& shape, const int step, const int column) {
  return fft_inputs(shape, step + 1, column);
}

// ---- nearest -----------------------------------------------------------------------------------

Set nearest_inputs(const Shape& shape, int, const int column) {
  const int first = column - shape.radix / 2;
  return window(shape, first, first + shape.radix - 1);
}
Set nearest_readers(const Shape& shape, int, const int column) {
  const int last = column + shape.radix / 2;
  return window(shape, last - shape.radix + 1, last);
}

constexpr int random_period = 16;

bool is_kept(const Shape& shape, const int step, const int reader, const int input) {
  return uniform(shape.seed, (step - 1) % random_period, reader, input) < 0.5;
}
Set random_inputs(const Shape& shape, const int step, const int column) {
  Set set = nearest_inputs(shape, step, column);
  std::erase_if(set, [&](const int input) { return !is_kept(shape, step, column, input); });
  return set;
}
Set random_readers(const Shape& shape, const int step, const int column) {
  Set set = nearest_readers(shape, step, column);
  std::erase_if(set, [&](const int reader) { return !is_kept(shape, step + 1, reader, column); });
  return set;
}
int random_repeats(const Shape&) { return random_period; }

// ---- spread ------------------------------------------------------------------------------------

// Input `number` of a task of `step` lies so many columns to the right: inputs are as far from each
// other as the width allows, and all but the first move by one column with each step.
int distance(const Shape& shape, const int step, const int number) {
  const std::int64_t evenly = std::int64_t{number} * shape.width / shape.radix;
  return static_cast<int>((evenly + (number > 0 ? step - 1 : 0)) % shape.width);
}
Set spread_inputs(const Shape& shape, const int step, const int column) {
  Set set;
  for (int i = 0; i < shape.radix; ++i) set.push_back(column + distance(shape, step, i));
  return wrapped(shape, std::move(set));
}
Set spread_readers(const Shape& shape, const int step, const int column) {
  Set set;
  for (int i = 0; i < shape.radix; ++i) set.push_back(column - distance(shape, step + 1, i));
  return wrapped(shape, std::move(set));
}
int width_of(const Shape& shape) { return shape.width; }

void keep(Set& set, const Columns& columns) {
  std::erase_if(set, [&columns](const int column) { return !columns.has(column); });
}

}  // namespace

const std::vector<Pattern>& all_patterns() {
  static const std::vector<Pattern> patterns{
      {"trivial", false, every_column, none, none, always_equal},
      {"no_communication", false, every_column, own, own, always_equal},
      {"stencil_1d", true, every_column, stencil, stencil, always_equal},
      {"stencil_1d_periodic", true, every_column, stencil_periodic, stencil_periodic,
       always_equal},
      {"dom", true, diagonal, sweep_inputs, sweep_readers, always_equal},
      {"tree", true, level, parent, children, always_equal},
      {"fft", true, every_column, fft_inputs, fft_readers, levels},
      {"all_to_all", true, every_column, all, all, always_equal},
      {"nearest", true, every_column, nearest_inputs, nearest_readers, always_equal},
      {"spread", true, every_column, spread_inputs, spread_readers, width_of},
      {"random_nearest", true, every_column, random_inputs, random_readers, random_repeats},
  };
  return patterns;
}

const Pattern* find_pattern(const std::string_view name) {
  const auto found = std::ranges::find(all_patterns(), name, &Pattern::name);
  return found == all_patterns().end() ? nullptr : &*found;
}

Set inputs(const Pattern& pattern, const Shape& shape, const int step, const int column) {
  if (step == 0) return {};
  Set set = pattern.inputs(shape, step, column);
  keep(set, pattern.columns(shape, step - 1));
  return set;
}

Set readers(const Pattern& pattern, const Shape& shape, const int step, const int column) {
  if (step + 1 >= shape.steps) return {};
  Set set = pattern.readers(shape, step, column);
  keep(set, pattern.columns(shape, step + 1));
  return set;
}

// The finaliser of SplitMix64 (Steele et al., OOPSLA 2014), once for each argument.
double uniform(const std::uint64_t seed, const int first, const int second,
               const int third) noexcept {
  std::uint64_t hash = seed;
  for (const int next : {first, second, third}) {
    hash += 0x9e3779b97f4a7c15 * (static_cast<std::uint64_t>(next) + 1);
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
    hash ^= hash >> 31;
  }
  return static_cast<double>(hash >> 11) * 0x1p-53;
}

}  // namespace task_bench
