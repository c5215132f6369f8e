// SPDX-License-Identifier: BSD-3-Clause
#include "graph.hpp"

#include <algorithm>

namespace task_bench {

Graph::Graph(const Pattern& pattern, const Shape& shape, const int rank, const int ranks)
    : pattern_(pattern), shape_(shape), rank_(rank), ranks_(ranks), period_(pattern.period(shape)) {
  const auto first_of = [&](const int of) {
    return static_cast<int>(std::int64_t{of} * shape.width / ranks);
  };
  mine_ = {first_of(rank), first_of(rank + 1)};
  const int last = shape.steps - 1;
  const int middle = period_ == 0 ? last - 1 : std::min(period_, last - 1);
  for (int step = 0; step <= middle; ++step) steps_.push_back(make(step));
  steps_.push_back(make(last));
}

const Graph::Step& Graph::at(const int step) const {
  if (step == shape_.steps - 1) return steps_.back();
  if (period_ == 0 || step == 0) return steps_[static_cast<std::size_t>(step)];
  return steps_[static_cast<std::size_t>(1 + (step - 1) % period_)];
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
