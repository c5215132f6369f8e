// SPDX-License-Identifier: BSD-3-Clause
// A graph of tasks as one rank of several sees it: the sets of the pattern, computed once, and the
// messages between ranks that follow. The sets are not computed while a run is timed. Knows no MPI.
//
// Each rank owns a block of neighbouring columns and runs their tasks. An output that tasks of
// another rank read goes to that rank once, however many tasks there read the output.
#pragma once

#include <cstdint>
#include <vector>

#include "patterns.hpp"

namespace task_bench {

// The steps from `first` to below `end`.
struct Steps {
  int first = 0;
  int end = 0;
  [[nodiscard]] int count() const noexcept { return end - first; }
};

// Thread safety: any thread reads; nobody writes after the constructor.
class Graph {
 public:
  // REQUIRES: 0 <= rank < ranks <= shape.width.
  Graph(const Pattern& pattern, const Shape& shape, int rank, int ranks);

  [[nodiscard]] const Pattern& pattern() const noexcept { return pattern_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] int steps() const noexcept { return shape_.steps; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] int owner(const int column) const noexcept {
    return static_cast<int>((std::int64_t{column} * ranks_ + ranks_ - 1) / shape_.width);
  }
  [[nodiscard]] bool is_mine(const int column) const noexcept { return mine_.has(column); }
  [[nodiscard]] Columns mine() const noexcept { return mine_; }

  // The columns that have a task in a step, and those of them that this rank owns.
  [[nodiscard]] Columns columns(const int step) const { return at(step).columns; }
  [[nodiscard]] Columns my_columns(const int step) const { return at(step).mine; }
  // The columns of step - 1 that the task reads. REQUIRES: the step has the column.
  [[nodiscard]] const Set& inputs(const int step, const int column) const {
    return at(step).inputs[static_cast<std::size_t>(column)];
  }
  // The other ranks whose tasks read the output of the task. REQUIRES: the column is mine.
  [[nodiscard]] const std::vector<int>& receivers(const int step, const int column) const {
    return at(step).receivers[static_cast<std::size_t>(column)];
  }
  // The columns of other ranks whose outputs of `step` tasks of this rank read.
  [[nodiscard]] const Set& imports(const int step) const { return at(step).imports; }

  // The longest row of steps of which s and s + period() have equal columns and sets.
  [[nodiscard]] Steps repeated() const noexcept { return repeated_; }
  [[nodiscard]] int period() const noexcept { return period_; }

 private:
  struct Step {
    Columns columns, mine;
    std::vector<Set> inputs;                  // by column
    std::vector<std::vector<int>> receivers;  // by column, of own columns
    Set imports;
  };
  [[nodiscard]] const Step& at(int step) const;
  [[nodiscard]] Step make(int step) const;

  const Pattern& pattern_;
  const Shape shape_;
  const int rank_, ranks_;
  Columns mine_;
  const int period_;
  const Steps repeated_;
  std::vector<Step> steps_;  // of the repeated steps, those of one period
};

}  // namespace task_bench
