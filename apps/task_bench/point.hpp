// SPDX-License-Identifier: BSD-3-Clause
// A task of a graph: it checks its inputs, computes, and writes its output. All variants run their
// tasks by Board::run(), which knows no tasks of a runtime and calls MPI only to end the program.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace task_bench {

enum class Kernel {
  compute,     // multiplies and adds within a cache line's neighbourhood, in registers or L1
  memory,      // copies through a working set of `scratch_bytes`
  imbalanced,  // compute, with a random number of rounds for each task
};

// The work of a task.
struct Work {
  Kernel kernel = Kernel::compute;
  int rounds = 0;  // of a task; imbalanced: on average
  // Imbalanced: rounds are equally distributed from 1 - imbalance / 2 to 1 + imbalance / 2 times
  // the average. 2 is the distribution of the paper.
  double imbalance = 2;
  std::size_t scratch_bytes = 64 * 1024;
};

// What an output is filled with: the task that has written it.
struct Mark {
  std::int64_t step;
  std::int64_t column;
  bool operator==(const Mark&) const = default;
};

// A task whose output is wrong on purpose; -1: no task. For tests of the check.
struct Fault {
  int step = -1;
  int column = -1;
};

// A run of one graph on the ranks of `comm`.
struct Run {
  const Graph& graph;
  const char* variant;
  Work work;
  std::size_t marks;  // of an output
  Fault fault;
  MPI_Comm comm;
};

// The rounds of a task.
[[nodiscard]] int rounds_of(const Run& run, int step, int column) noexcept;
// Seconds of one round, measured on the calling thread.
[[nodiscard]] double measure_round(const Work& work);

// The memory of a rank: the outputs of two steps, by turns, and each own column's working set.
// Thread safety: run() may be called for several tasks at a time, if no task that is running writes
// what another one reads or writes; the tasks (s, c) and (s + 2, c) write the same output.
class Board {
 public:
  explicit Board(const Run& run);

  // The output of a task, which the task (step + 2, column) overwrites. A rank has memory for the
  // outputs of other ranks' columns, too.
  [[nodiscard]] Mark* output(const int step, const int column) noexcept {
    return first_ + index(step, column) * stride_;
  }

  // Runs a task on the outputs of this board.
  void run(const int step, const int column) {
    run(step, column, output(step, column), [&](const std::size_t, const int input) {
      return output(step - 1, input);
    });
  }
  // input_of(i, column) is the memory of the task's input number i, which is that column's output.
  // An input that is not the output of (step - 1, column) ends the program: all ranks of it.
  template <class InputOf>
  void run(const int step, const int column, Mark* const out, InputOf&& input_of) {
    std::size_t number = 0;
    for (const int input : run_.graph.inputs(step, column)) {
      check_input(step, column, input, input_of(number++, input));
    }
    compute(step, column);
    fill(step, column, out);
  }

  // Tasks that have run, and their rounds. REQUIRES: no task is running.
  [[nodiscard]] std::int64_t tasks() const noexcept;
  [[nodiscard]] std::int64_t rounds() const noexcept;

 private:
  struct alignas(64) Cell;

  [[nodiscard]] std::size_t index(const int step, const int column) const noexcept {
    return static_cast<std::size_t>(step & 1) * static_cast<std::size_t>(run_.graph.shape().width) +
           static_cast<std::size_t>(column);
  }
  void check_input(int step, int column, int input, const Mark* marks) const {
    const Mark expected{step - 1, input};
    for (std::size_t i = 0; i < run_.marks; ++i) {
      if (marks[i] != expected) [[unlikely]] refuse(step, column, input, marks[i]);
    }
  }
  [[noreturn]] void refuse(int step, int column, int input, const Mark& found) const;
  void compute(int step, int column);
  void fill(int step, int column, Mark* out) const;

  const Run run_;
  const std::size_t stride_;  // marks from one output to the next: whole cache lines
  std::vector<Mark> marks_;
  Mark* first_;  // in marks_, where a cache line begins
  std::vector<Cell> cells_;  // by index()
};

// What a kernel computes with.
struct alignas(64) Board::Cell {
  double values[64] = {};
  std::vector<double> scratch;
  std::size_t place = 0;  // of the next round, in the first half of `scratch`
  std::int64_t tasks = 0;
  std::int64_t rounds = 0;
};

}  // namespace task_bench
