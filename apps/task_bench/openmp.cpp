// SPDX-License-Identifier: BSD-3-Clause
// The variant in MPI+OpenMP: one parallel region, in which a step is a loop over the rank's columns
// and a barrier. The first thread calls MPI.
#include <omp.h>

#include "exchange.hpp"

namespace task_bench {

double run_openmp(const Run& run, Board& board) {
  omp_set_schedule(run.work.kernel == Kernel::imbalanced ? omp_sched_dynamic : omp_sched_static, 0);
  Exchange exchange(run, board);
  const double start = start_together(run);
#pragma omp parallel
  for (int step = 0; step < run.graph.steps(); ++step) {
    const Columns columns = run.graph.my_columns(step);
#pragma omp master
    exchange.receive(step);
#pragma omp for schedule(runtime)
    for (int column = columns.first; column < columns.end; ++column) board.run(step, column);
    if (run.graph.ranks() > 1) {
#pragma omp master
      {
        for (int column = columns.first; column < columns.end; ++column) {
          exchange.send(step, column);
        }
        exchange.wait();
      }
#pragma omp barrier
    }
  }
  return MPI_Wtime() - start;
}

}  // namespace task_bench
