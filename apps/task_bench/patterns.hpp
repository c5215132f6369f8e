// SPDX-License-Identifier: BSD-3-Clause
// The dependence patterns of Task Bench (Slaughter et al., SC20), as one table of functions. A
// graph has steps and columns; a task is one point (step, column), and it reads outputs of tasks of
// the step before. Pure: knows no ranks, no tasks and no MPI.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace task_bench {

// The size of a graph, and the parameters of patterns that have parameters.
struct Shape {
  int width = 16;  // columns
  int steps = 1000;
  int radix = 5;           // inputs of a task, at most: nearest, spread, random_nearest
  std::uint64_t seed = 1;  // random_nearest
};

// The columns from `first` to below `end`.
struct Columns {
  int first = 0;
  int end = 0;
  [[nodiscard]] bool has(const int column) const noexcept {
    return first <= column && column < end;
  }
  [[nodiscard]] int count() const noexcept { return end - first; }
};

// Columns in ascending order, each once.
using Set = std::vector<int>;

// One row of the table. The functions of sets may name columns that the other step does not have;
// inputs() and readers() below leave these columns out.
struct Pattern {
  const char* name;
  bool communicates;  // a task reads other columns than its own
  // The columns of a step that have a task.
  Columns (*columns)(const Shape& shape, int step);
  // The columns of step - 1 that the task (step, column) reads.
  Set (*inputs)(const Shape& shape, int step, int column);
  // The columns of step + 1 whose tasks read (step, column): the reverse of `inputs`.
  Set (*readers)(const Shape& shape, int step, int column);
  // `inputs` and `readers` give equal sets for the steps s and s + period.
  int (*period)(const Shape& shape);
};

[[nodiscard]] const std::vector<Pattern>& all_patterns();
// Null if no pattern has this name.
[[nodiscard]] const Pattern* find_pattern(std::string_view name);

// The inputs of a task, and the columns that read its output, for tasks that exist: step 0 has no
// inputs, and the last step has no readers. REQUIRES: the pattern has a task (step, column).
[[nodiscard]] Set inputs(const Pattern& pattern, const Shape& shape, int step, int column);
[[nodiscard]] Set readers(const Pattern& pattern, const Shape& shape, int step, int column);

// A number from 0 to below 1 that depends on the arguments alone.
[[nodiscard]] double uniform(std::uint64_t seed, int first, int second, int third) noexcept;

}  // namespace task_bench
