// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <imbrex/imbrex.hpp>

namespace cholesky {

Stopwatch::Stopwatch(const Team& team, const Options& options) : team_(team), options_(options) {
  for (int i = 0; i < imbrex::worker_count(); ++i) meters_.emplace_back(options.rate_size);
}

Run Stopwatch::run(Variant variant, TiledMatrix& matrix, const Source& source) {
  Run run{};
  run.variant = variant;
  fill(matrix, source);
  const double rate_before = measure_rate();

  MPI_Barrier(team_.all());
  const imbrex::detail::Totals totals = imbrex::detail::totals();
  const double start = MPI_Wtime();
  TaskMemory memory;
  run.bad_minor = variant == Variant::fork_join
                      ? factor_fork_join(team_, matrix)
                      : factor_tasks(team_, matrix, options_.tasks, memory);
  const double mine = MPI_Wtime() - start;
  run.activity = activity_since(totals);

  const auto received = static_cast<double>(memory.tiles_peak);
  MPI_Allreduce(&mine, &run.seconds, 1, MPI_DOUBLE, MPI_MAX, team_.all());
  MPI_Allreduce(&received, &run.received_peak, 1, MPI_DOUBLE, MPI_MAX, team_.all());
  const auto n = static_cast<double>(matrix.layout().n);
  run.gflops = 1e-9 * (n * n * n / 3 + n * n / 2 + n / 6) / run.seconds;
  run.rate = 0.5 * (rate_before + measure_rate());
  if (run.bad_minor == 0) run.residual = residual(team_, matrix, source, options_.residual);
  return run;
}

double Stopwatch::measure_rate() {
  std::vector<double> rates(meters_.size(), 0.0);
  MPI_Barrier(team_.all());
  const double deadline = MPI_Wtime() + options_.rate_s;
  imbrex::finish([&] {
    for (std::size_t i = 0; i < meters_.size(); ++i) {
      // One that starts after the deadline, because a worker was not there, counts nothing.
      imbrex::task("dgemm rate").launch([this, &rates, i, deadline] {
        rates[i] = meters_[i].measure(deadline, &MPI_Wtime);
      });
    }
  });
  double mine = 0;
  for (const double rate : rates) mine += rate;
  double sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, team_.all());
  return sum;
}

Activity Stopwatch::activity_since(const imbrex::detail::Totals& start) const {
  const imbrex::detail::Totals now = imbrex::detail::totals();
  const double mine[6] = {now.in_task_s - start.in_task_s,     now.idle_s - start.idle_s,
                          now.overhead_s - start.overhead_s,   now.tasks - start.tasks,
                          now.suspensions - start.suspensions, now.steals - start.steals};
  double sum[6];
  MPI_Allreduce(mine, sum, 6, MPI_DOUBLE, MPI_SUM, team_.all());
  return {sum[0], sum[1], sum[2], sum[3], sum[4], sum[5]};
}

}  // namespace cholesky
