// SPDX-License-Identifier: BSD-3-Clause
#include "graph.hpp"

#include <algorithm>

namespace task_bench {
namespace {

// The longest row of steps in which the columns are those of the step before and of the next. The
// first step has no inputs, and the last one no readers, so that they differ from all others.
Steps repeated(const Pattern& pattern, const Shape& shape) {
  Steps longest{shape.steps, shape.steps};
  int first = 0;  // of the steps that have the columns of `step`
  for (int step = 1; step < shape.steps; ++step) {
    const Columns before = pattern.columns(shape, step - 1);
    const Columns here = pattern.columns(shape, step);
    if (here.first != before.first || here.end != before.end) first = step;
    if (step - first - 1 > longest.count()) longest = {first + 1, step};
  }
  return longest;
}

}  // namespace

Graph::Graph(const Pattern& pattern, const Shape& shape, const int rank, const int ranks)
    : pattern_(pattern), shape_(shape), rank_(rank), ranks_(ranks), period_(pattern.period(shape)),
      repeated_(task_bench::repeated(pattern, shape)) {
  const auto first_of = [&](const int of) {
    return static_cast<int>(std::int64_t{of} * shape.width / ranks);
  };
  mine_ = {first_of(rank), first_of(rank + 1)};
  const int one_period = std::min(repeated_.first + period_, repeated_.end);
  for (int step = 0; step < one_period; ++step) steps_.push_back(make(step));
  for (int step = repeated_.end; step < shape.steps; ++step) steps_.push_back(make(step));
}

const Graph::Step& Graph::at(const int step) const {
  int kept = step;
  if (step >= repeated_.end) {
    kept -= std::max(0, repeated_.count() - period_);
  } else if (step >= repeated_.first) {
    kept = repeated_.first + (step - repeated_.first) % period_;
  }
  return steps_[static_cast<std::size_t>(kept)];
}

Graph::Step Graph::make(const int step) const {
  Step row;
  row.columns = pattern_.columns(shape_, step);
  row.mine = {std::max(mine_.first, row.columns.first), std::min(mine_.end, row.columns.end)};
  row.mine.end = std::max(row.mine.first, row.mine.end);
  row.inputs.resize(static_cast<std::size_t>(shape_.width));
  row.receivers.resize(static_cast<std::size_t>(shape_.width));
  for (int column = row.columns.first; column < row.columns.end; ++column) {
    const auto index = static_cast<std::size_t>(column);
    row.inputs[index] = task_bench::inputs(pattern_, shape_, step, column);
    bool read_here = false;
    std::vector<int>& receivers = row.receivers[index];
    for (const int reader : task_bench::readers(pattern_, shape_, step, column)) {
      const int rank = owner(reader);
      if (rank == rank_) read_here = true;
      // Readers ascend, and so do their owners.
      else if (receivers.empty() || receivers.back() != rank) receivers.push_back(rank);
    }
    if (is_mine(column)) continue;
    receivers.clear();
    if (read_here) row.imports.push_back(column);
  }
  return row;
}

}  // namespace task_bench
