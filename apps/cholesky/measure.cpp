// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <imbrex/detail/observation.hpp>
#include <imbrex/imbrex.hpp>

#include <algorithm>

namespace cholesky {

Stopwatch::Stopwatch(const Team& team, const Options& options, const Kernels& kernels)
    : team_(team), options_(options), kernels_(kernels) {
  if (kernels.sleep()) return;
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
  TaskUse use;
  run.bad_minor = factor(variant, matrix, use);
  const double mine = MPI_Wtime() - start;
  run.activity = activity_since(team_, totals);

  const double most[2] = {static_cast<double>(use.tiles_peak),
                          static_cast<double>(std::max(use.bytes_sent, use.bytes_received))};
  double of_all[2];
  MPI_Allreduce(&mine, &run.seconds, 1, MPI_DOUBLE, MPI_MAX, team_.all());
  MPI_Allreduce(most, of_all, 2, MPI_DOUBLE, MPI_MAX, team_.all());
  run.received_peak = of_all[0];
  run.port_bytes = of_all[1];
  run.broadcasts = sum_over_ranks(team_, use.broadcasts);
  const auto n = static_cast<double>(matrix.layout().n);
  run.gflops = 1e-9 * (n * n * n / 3 + n * n / 2 + n / 6) / run.seconds;
  run.rate = 0.5 * (rate_before + measure_rate());
  if (run.bad_minor == 0 && !kernels_.sleep()) {
    run.residual = residual(team_, matrix, source, options_.residual);
  }
  return run;
}

std::int64_t Stopwatch::factor(Variant variant, TiledMatrix& matrix, TaskUse& use) const {
  switch (variant) {
    case Variant::fork_join: return factor_fork_join(team_, matrix, kernels_);
    case Variant::tasks: return factor_tasks(team_, matrix, kernels_, options_.tasks, use);
    default: return factor_inserted(team_, matrix, kernels_, options_.tasks, use);
  }
}

double Stopwatch::measure_rate() {
  if (kernels_.sleep()) return 0;
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

}  // namespace cholesky
