// SPDX-License-Identifier: BSD-3-Clause
// The ways to run a graph. Each function is collective and returns the seconds of this rank from a
// barrier on, after everything that a program does once is done.
//
//   mpi     a rank is one thread; messages are posted before and sent during the step's tasks
//   openmp  a parallel loop over the rank's columns; the first thread exchanges messages
//   tasks   imbrex's tasks with accesses, which receive and send by blocking calls
//   iterate the tasks of the steps that repeat are created once, by imbrex::iterate()
//   data    imbrex's data with owners: every rank inserts the whole graph
#pragma once

#include "point.hpp"

namespace task_bench {

[[nodiscard]] double run_mpi(const Run& run, Board& board);
[[nodiscard]] double run_openmp(const Run& run, Board& board);
[[nodiscard]] double run_tasks(const Run& run, Board& board);
[[nodiscard]] double run_iterate(const Run& run, Board& board);
[[nodiscard]] double run_data(const Run& run, Board& board);

// The message that carries the output of a task. Two outputs that are in flight at a time between
// two ranks have different tags.
[[nodiscard]] inline int tag_of(const Run& run, const int step, const int column) noexcept {
  return (step & 1) * run.graph.shape().width + column;
}

// The time when all ranks are here.
[[nodiscard]] inline double start_together(const Run& run) {
  MPI_Barrier(run.comm);
  return MPI_Wtime();
}

}  // namespace task_bench
