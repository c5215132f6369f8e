// SPDX-License-Identifier: BSD-3-Clause
// The variant in plain MPI: an output leaves as soon as it is there, while later tasks compute.
#include "exchange.hpp"

namespace task_bench {

double run_mpi(const Run& run, Board& board) {
  Exchange exchange(run, board);
  const double start = start_together(run);
  for (int step = 0; step < run.graph.steps(); ++step) {
    exchange.receive(step);
    const Columns columns = run.graph.my_columns(step);
    for (int column = columns.first; column < columns.end; ++column) {
      board.run(step, column);
      exchange.send(step, column);
    }
    exchange.wait();
  }
  return MPI_Wtime() - start;
}

}  // namespace task_bench
